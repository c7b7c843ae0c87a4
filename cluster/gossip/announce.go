package gossip

import (
	"log/slog"
	"strings"
	"time"
)

const (
	// repeatAfter is the time before the same trouble is logged again.
	repeatAfter = time.Minute
	// maxTroubles bounds the troubles that are told apart in that time.
	maxTroubles = 256
)

// notice is something to log, away from memberlist's callbacks.
type notice struct {
	level slog.Level
	key   string // what is the same is said once in a while
	text  string
	args  []any
}

// announce logs changes of the view and what the callbacks noticed, and tells
// the observer. Callbacks hold memberlist's locks, so they can't do it.
func (g *Gossip) announce() {
	known := map[string]Member{}
	said := map[string]time.Time{}
	for {
		members, changed := g.view.members()
		g.announceMembers(known, members)
		select {
		case <-changed:
		case n := <-g.notices:
			now := time.Now()
			if last, ok := said[n.key]; ok && now.Sub(last) < repeatAfter {
				continue
			}
			if len(said) >= maxTroubles {
				clear(said)
			}
			said[n.key] = now
			g.c.Logger.Log(g.closing, n.level, n.text, n.args...)
		case <-g.closing.Done():
			return
		}
	}
}

// announceMembers logs how members differ from known, and brings known up to
// date.
func (g *Gossip) announceMembers(known map[string]Member, members []Member) {
	var n [Left + 1]int
	same := len(members) == len(known)
	for _, m := range members {
		n[m.State]++
		old, ok := known[m.Name]
		same = same && ok && old == m
		known[m.Name] = m
		if m.Name == g.c.Name || ok && old.State == m.State && old.Meta.Instance == m.Meta.Instance {
			continue
		}
		l := g.c.Logger.With("member", m.Name, "address", m.Address)
		switch {
		case m.State == Alive && ok && old.State == Alive:
			l.Info("a member has been started anew")
		case m.State == Alive:
			l.Info("a member is there", "version", m.Meta.Version)
		case m.State == Failed:
			l.Warn("a member has failed")
		case m.State == Left:
			l.Info("a member has left")
		}
	}
	if len(known) > len(members) { // some were forgotten
		clear(known)
		for _, m := range members {
			known[m.Name] = m
		}
	}
	if !same {
		g.c.Observer.Members(n[Alive], n[Failed], n[Left])
	}
}

// tell hands a notice over; if too many wait already it is dropped.
func (g *Gossip) tell(n notice) {
	select {
	case g.notices <- n:
	default:
	}
}

// log notes a trouble.
func (g *Gossip) log(text string, args ...any) {
	g.tell(notice{level: slog.LevelWarn, key: text, text: text, args: args})
}

// refuse notes a refusal.
func (g *Gossip) refuse(r *RefusedError) {
	g.c.Observer.Refused(r.Reason)
	if r.Reason != SessionForged && r.Reason != TooManyStrangers { // of anybody
		g.trouble.set(r.Error())
	}
	text := "a server is refused as a member"
	if r.Reason == OtherKey {
		text = "this server and another one refuse each other: their gossip keys differ"
	}
	var args []any
	if r.Name != "" {
		args = append(args, "name", r.Name)
	}
	if r.Address != "" {
		args = append(args, "address", r.Address)
	}
	g.tell(notice{
		level: slog.LevelWarn,
		key:   string(r.Reason) + "\x00" + r.Name + "\x00" + host(r.Address),
		text:  text,
		args:  append(args, "reason", r.Text),
	})
}

func host(addr string) string {
	if i := strings.LastIndexByte(addr, ':'); i >= 0 {
		return addr[:i]
	}
	return addr
}
