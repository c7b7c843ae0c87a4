package rest

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"kvnet/model"
)

// TestWritesByMm5AreOnlyAcknowledged: all fifteen answer 200 and {}, say in a
// Warning and in the log that nothing was changed, and change nothing (row E16 of
// docs/deviations.md).
func TestWritesByMm5AreOnlyAcknowledged(t *testing.T) {
	var log syncBuffer
	l := newLab(t, func(c *Config) { c.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
	l.must(201, "POST", networksPath, networkBody("n"))
	l.must(201, "POST", routersPath, `{"name":"n","mac":"fe:00:00:00:00:01"}`)
	before := l.db.Snapshot().Revision()
	for _, kind := range []string{"network", "instance", "vr", "fip", "lb"} {
		for _, c := range []struct{ method, path, body string }{
			{"POST", "", networkBody("m")},
			{"POST", "", "not JSON {"},
			{"POST", "", ""},
			{"PUT", "/n", `{"name":"other"}`},
			{"PUT", "/absent%2F..", ""},
			{"DELETE", "/n", ""},
			{"DELETE", "/absent", ""},
		} {
			path := mm5Path + "/" + kind + c.path
			r := l.must(200, c.method, path, c.body)
			if string(r.body) != "{}" || !strings.Contains(r.header.Get("Warning"), "nothing was changed") {
				t.Errorf("%s %s: %s, Warning %q", c.method, path, r.body, r.header.Get("Warning"))
			}
		}
		for _, c := range [][2]string{{"POST", ""}, {"PUT", "/n"}} {
			body := "x"
			r := l.send(c[0], mm5Path+"/"+kind+c[1], map[string]string{"Authorization": adminAuth, "Content-Type": "text/plain"}, &body)
			if r.status != 415 {
				t.Errorf("%s %s as text: %d, want 415", c[0], kind, r.status)
			}
		}
	}
	if now := l.db.Snapshot().Revision(); now != before {
		t.Error("something was stored")
	}
	if n := strings.Count(log.String(), "acknowledged"); n != 5*7 {
		t.Errorf("%d lines in the log, want %d", n, 5*7)
	}
}

// TestStateOfAGateway by the original's PUT, which only reads, and by GET.
func TestStateOfAGateway(t *testing.T) {
	l := newLab(t)
	l.must(201, "POST", nodesPath, nodeBody(worker1, strings.Replace(worker2, `"WORKER"`, `"GATEWAY"`, 1)))
	want := func(host, state string) {
		t.Helper()
		for _, method := range []string{"PUT", "GET"} {
			if r := l.must(200, method, mm5Path+"/state/mer/"+host, ""); string(r.body) != fmt.Sprintf(`{"nodeName":"%s","state":"%s"}`, host, state) {
				t.Errorf("%s of %s: %s, want %s", method, host, r.body, state)
			}
		}
	}
	want("w2", "INACTIVE")
	l.setNodeState("w1", model.NodeComplete)
	l.setNodeState("w2", model.NodeComplete)
	want("w1", "INACTIVE")
	want("w2", "ACTIVE")
	want("nobody", "INACTIVE")
	viewer := map[string]string{"Authorization": viewerAuth}
	if r := l.send("PUT", mm5Path+"/state/mer/w2", viewer, nil); r.status != 403 {
		t.Errorf("PUT by a viewer: %d, in ONOS it is 403", r.status)
	}
	if r := l.send("GET", mm5Path+"/state/mer/w2", viewer, nil); r.status != 200 {
		t.Errorf("GET by a viewer: %d", r.status)
	}
}
