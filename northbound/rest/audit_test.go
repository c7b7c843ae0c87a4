package rest

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/time/rate"
)

// audited is a lab, and what its server has logged since the last call of lines.
func audited(t *testing.T, change ...func(*Config)) (l *lab, lines func() []map[string]any) {
	t.Helper()
	var log syncBuffer
	l = newLab(t, append(change, func(c *Config) { c.Logger = slog.New(slog.NewJSONHandler(&log, nil)) })...)
	read := 0
	return l, func() (out []map[string]any) {
		t.Helper()
		text := log.String()
		for line := range strings.Lines(text[read:]) {
			var m map[string]any
			if err := json.Unmarshal([]byte(line), &m); err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			out = append(out, m)
		}
		read = len(text)
		return out
	}
}

// TestWritesAreAudited: one line for each call that changes something or would
// have, and none for reads.
func TestWritesAreAudited(t *testing.T) {
	l, lines := audited(t)
	l.must(200, "GET", networksPath, "")
	l.must(404, "GET", networksPath+"/x", "")
	l.send("GET", networksPath, nil, nil)
	if got := lines(); got != nil {
		t.Errorf("reads are logged: %v", got)
	}
	secret := `"the-secret"`
	network := strings.Replace(networkBody("n 1"), `"name":"n 1"`, `"name":`+secret, 1)
	for _, c := range []struct {
		method, path, body, auth string
		user, object             any
		status                   float64
	}{
		{"POST", networksPath, network, adminAuth, "onos", "n 1", 201},
		{"POST", networksPath, network, adminAuth, "onos", "n 1", 400}, // a duplicate
		{"POST", networksPath, secret, adminAuth, "onos", nil, 400},
		{"PUT", networksPath + "/n%201", network, adminAuth, "onos", "n 1", 200},
		{"DELETE", networksPath + "/n%201", "", viewerAuth, "guest", "n 1", 403},
		{"DELETE", networksPath + "/n%201", "", adminAuth, "onos", "n 1", 204},
		{"POST", routersPath, `{"name":"r","mac":"fe:00:00:00:00:01"}`, adminAuth, "onos", "r", 201},
		{"POST", nodesPath, `{"nodes":[{"hostname":"a","type":"WORKER","managementIp":"10.0.0.1"},{"hostname":"b","type":"WORKER","managementIp":"10.0.0.2"}]}`, adminAuth, "onos", "a b", 201},
		{"POST", apiConfigPath, `{"scheme":"HTTPS","ipAddress":"10.0.0.9","port":6443,"token":"the-secret","caCertData":"c"}`, adminAuth, "onos", "https://10.0.0.9:6443", 201},
		{"DELETE", apiConfigPath + "/https://10.0.0.9:6443", "", adminAuth, "onos", "https://10.0.0.9:6443", 204},
		{"DELETE", apiConfigPath + "/https:%2F%2F10.0.0.9:6443", "", adminAuth, "onos", "https://10.0.0.9:6443", 304},
		{"GET", nodesPath + "/init/all", "", viewerAuth, "guest", nil, 200},
		{"POST", networksPath, network, "", "-", nil, 401},
		{"DELETE", networksPath + "/n", "", basic("the-secret", "the-secret")["Authorization"], "-", "n", 401},
	} {
		h := map[string]string{"Content-Type": jsonType}
		if c.auth != "" {
			h["Authorization"] = c.auth
		}
		r := l.send(c.method, c.path, h, &c.body)
		got := lines()
		if len(got) != 1 {
			t.Errorf("%s %s: %d lines: %v", c.method, c.path, len(got), got)
			continue
		}
		path, err := url.PathUnescape(c.path)
		if err != nil {
			t.Fatal(err)
		}
		line := got[0]
		if float64(r.status) != c.status || line["msg"] != "REST write" || line["level"] != "INFO" || line["status"] != c.status ||
			line["user"] != c.user || line["object"] != c.object || line["method"] != c.method || line["path"] != path ||
			!strings.HasPrefix(line["from"].(string), "127.0.0.1:") || line["took"] == nil {
			t.Errorf("%s %s as %v: %d %s; line %v", c.method, c.path, c.user, r.status, r.body, line)
		}
		if text := fmt.Sprint(line); strings.Contains(text, "the-secret") || strings.Contains(text, "rocks") || strings.Contains(text, adminAuth) {
			t.Errorf("the line tells a secret: %s", text)
		}
	}
}

// TestAuditLinesStayLines: what comes from clients is cut and can't break out.
func TestAuditLinesStayLines(t *testing.T) {
	var log syncBuffer
	l := newLab(t, func(c *Config) { c.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
	l.must(400, "DELETE", networksPath+"/a%0Auser=root%1B%5B2J%E2%80%AE%ff", "")
	l.must(400, "DELETE", networksPath+"/"+strings.Repeat("x", 5000), "")
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	if len(lines) != 2 {
		t.Fatalf("%d lines: %q", len(lines), lines)
	}
	for _, line := range lines {
		if len(line) > 1000 || !utf8.ValidString(line) || strings.ContainsAny(line, "\x1b\u202e") {
			t.Errorf("%d bytes: %q", len(line), line)
		}
	}
	if got := printable("a\nb\x1b\u202e\xffü"); got != `a\nb\x1b\u202e\xffü` {
		t.Errorf("%s", got)
	}
}

// TestStrangersCantFillTheLog: lines about those who have not signed in are few,
// and the next one tells how many there were not.
func TestStrangersCantFillTheLog(t *testing.T) {
	l, lines := audited(t)
	l.server.audit.strangers = rate.NewLimiter(0, 3)
	for range 10 {
		l.send("DELETE", networksPath+"/n", nil, nil)
	}
	if got := lines(); len(got) != 3 {
		t.Errorf("%d lines", len(got))
	}
	l.must(400, "DELETE", networksPath+"/n", "")
	if got := lines(); len(got) != 1 || got[0]["user"] != "onos" {
		t.Errorf("one who has signed in: %v", got)
	}
	l.server.audit.strangers = rate.NewLimiter(0, 1)
	l.send("DELETE", networksPath+"/n", nil, nil)
	if got := lines(); len(got) != 1 || got[0]["missed"] != 7.0 {
		t.Errorf("after 7 that were left out: %v", got)
	}
}

// TestPanicsAreAudited as what they become.
func TestPanicsAreAudited(t *testing.T) {
	l, lines := audited(t, func(c *Config) { c.Epochs = brokenEpochs{} })
	l.must(500, "POST", ownPath+"/cluster/raise-epoch", "")
	for _, line := range lines() {
		if line["msg"] == "REST write" {
			if line["status"] != 500.0 {
				t.Errorf("%v", line)
			}
			return
		}
	}
	t.Error("no line")
}

type brokenEpochs struct{ Epochs }
