package gossip

import (
	"log/slog"
	"strings"
)

// lines takes memberlist's log. Most of its warnings and errors come with any
// member that fails, which this package reports itself, so they are for
// debugging; some say what an operator must know.
type lines struct{ g *Gossip }

// What to look for in memberlist's lines, in lower case, and what to say of it.
var telling = []struct {
	part   string
	reason Refusal // empty: no refusal
	text   string
}{
	{"no installed keys could decrypt", OtherKey, "its gossip key and this server's differ"},
	{"decrypt packet failed", OtherKey, "its gossip key and this server's differ, or it has none"},
	{"encryption is configured but remote state is not encrypted", OtherKey, "it has no gossip key and this server has one"},
	{"remote state is encrypted and encryption is not configured", OtherKey, "it has a gossip key and this server has none"},
	{"over tcp but udp probes failed", "", "a member is reached by TCP and not by UDP: is a firewall in the way?"},
	{"handler queue full", "", "messages of the gossip are dropped: this server can't keep up"},
}

// Write takes one line.
func (l lines) Write(b []byte) (int, error) {
	line := strings.TrimSpace(string(b))
	for _, t := range telling {
		switch {
		case !strings.Contains(strings.ToLower(line), t.part):
			continue
		case t.reason != "":
			l.g.refuse(&RefusedError{Address: from(line), Reason: t.reason, Text: t.text})
		default:
			l.g.log(t.text, "detail", line)
		}
		return len(b), nil
	}
	l.g.tell(notice{level: slog.LevelDebug, key: line, text: line})
	return len(b), nil
}

// from is the address in a line that ends in from=ADDRESS.
func from(line string) string {
	_, addr, _ := strings.Cut(line, "from=")
	addr, _, _ = strings.Cut(addr, " ")
	return addr
}

// keyTrouble says that an error of memberlist comes from another gossip key.
func keyTrouble(err error) (text string, ok bool) {
	for _, t := range telling {
		if t.reason == OtherKey && strings.Contains(strings.ToLower(err.Error()), t.part) {
			return t.text, true
		}
	}
	return "", false
}
