package openflow_test

import (
	"bytes"
	"crypto/tls"
	"log/slog"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"kvnet/internal/tlstest"
	"kvnet/model"
	"kvnet/southbound/openflow"
	"kvnet/southbound/openflow/ovstest"
)

// pki has an authority for controllers and one for switches, as ovs-pki has, and
// the files of a server and of a switch.
type pki struct {
	controllers, switches *tlstest.CA
	server, sw            tlstest.Files
}

func newPKI(t *testing.T) pki {
	t.Helper()
	p := pki{controllers: tlstest.NewCA(t), switches: tlstest.NewCA(t)}
	p.server = tlstest.NewFiles(t, p.controllers.Issue("kvnet"), p.switches)
	p.sw = tlstest.NewFiles(t, p.switches.Issue("switch"), p.controllers)
	return p
}

// logged is a log that may be read while it is written.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

// lines are the lines of the log with this text.
func (l *logged) lines(text string) (out []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(l.text.String()) {
		if strings.Contains(line, text) {
			out = append(out, line)
		}
	}
	return out
}

// secure makes a listener take switches over TLS only.
func secure(t *testing.T, ln net.Listener, f tlstest.Files, log *slog.Logger) net.Listener {
	t.Helper()
	c, err := openflow.NewTLS(openflow.TLSFiles(f), log)
	if err != nil {
		t.Fatal(err)
	}
	return tls.NewListener(ln, c)
}

// startTLS runs a Server over TLS and keeps what it logs.
func startTLS(t *testing.T, ln net.Listener, f tlstest.Files, change func(*openflow.Config)) (*controller, *logged) {
	t.Helper()
	l := &logged{}
	log := slog.New(slog.NewTextHandler(l, nil))
	return startOn(t, secure(t, ln, f, log), func(c *openflow.Config) {
		c.Logger = log
		if change != nil {
			change(c)
		}
	}), l
}

// refusals are the lines about connections that were refused.
func (l *logged) refusals() []string { return l.lines("TLS refused") }

func TestEverySwitchConnectsToAllServersOverTLS(t *testing.T) {
	p := newPKI(t)
	ovs := ovstest.Start(t)
	ovs.AddBridge("br0", 0x42, "p1")
	ovs.SetTLS(p.sw.Cert, p.sw.Key, p.sw.CA)
	a, log := startTLS(t, ovs.Listen(), p.server, nil)
	b, _ := startTLS(t, ovs.Listen(), p.server, nil)
	c, _ := startTLS(t, ovs.Listen(), p.server, nil)
	c.SetRole(openflow.Role{Generation: 5})
	enforcesTheNewestTerm(t, a, b, func() { ovs.SetControllerTLS("br0", a.addr, b.addr, c.addr) })
	eventually(t, "the third server is a slave", func() bool {
		s := c.Session(0x42)
		if s == nil {
			return false
		}
		role, _ := s.Role()
		return role == model.RoleSlave
	})
	if flows := ovs.Flows("br0"); len(flows) != 2 {
		t.Errorf("the switch holds %q", flows)
	}
	if sw := a.db.Snapshot().Switch(0x42); sw == nil || !sw.TLS {
		t.Errorf("the switch: %+v", sw)
	}
	if l := log.lines("switch connected"); len(l) != 1 || !strings.Contains(l[0], "TLS 1.") {
		t.Errorf("the log says %q", l)
	}
	if n := len(log.refusals()); n != 0 || a.TLSFailures() != 0 {
		t.Errorf("%d refusals, %d counted", n, a.TLSFailures())
	}
}

func TestSwitchOfAnotherAuthorityGetsNothing(t *testing.T) {
	p := newPKI(t)
	stranger := tlstest.NewFiles(t, tlstest.NewCA(t).Issue("stranger"), p.controllers)
	ovs := ovstest.Start(t)
	ovs.AddBridge("br0", 0x42, "p1")
	ovs.SetTLS(stranger.Cert, stranger.Key, stranger.CA)
	c, log := startTLS(t, ovs.Listen(), p.server, nil)
	asMaster(c)
	ovs.SetControllerTLS("br0", c.addr)
	eventually(t, "the switch is refused again and again", func() bool { return c.TLSFailures() >= 2 })
	said := log.refusals()
	if len(said) != 1 || !strings.Contains(said[0], "level=WARN") || !strings.Contains(said[0], "address=127.0.0.1:") ||
		!strings.Contains(said[0], "unknown authority") || !strings.Contains(said[0], "CN=stranger") {
		t.Errorf("the log says %q", said)
	}
	if more := log.lines(""); len(more) != len(said) {
		t.Errorf("the log says more: %q", more)
	}
	c.recorder.mu.Lock()
	heard := len(c.ups) + len(c.downs)
	c.recorder.mu.Unlock()
	if heard != 0 || c.Session(0x42) != nil || c.db.Snapshot().Switch(0x42) != nil {
		t.Error("there was a session")
	}

	// With the right certificate it is as any other.
	ovs.SetTLS(p.sw.Cert, p.sw.Key, p.sw.CA)
	if err := c.master(t, 0x42).Bundle(until(t), []openflow.Message{add(t, 1, output(1))}); err != nil {
		t.Error(err)
	}
}

func TestSwitchRefusesAServerOfAnotherAuthority(t *testing.T) {
	p := newPKI(t)
	impostor := tlstest.NewFiles(t, tlstest.NewCA(t).Issue("impostor"), p.switches)
	ovs := ovstest.Start(t)
	ovs.AddBridge("br0", 0x42, "p1")
	ovs.SetTLS(p.sw.Cert, p.sw.Key, p.sw.CA)
	c, log := startTLS(t, ovs.Listen(), impostor, nil)
	asMaster(c)
	ovs.SetControllerTLS("br0", c.addr)
	eventually(t, "the switch refuses", func() bool { return len(log.refusals()) > 0 })
	if said := log.refusals()[0]; !strings.Contains(said, "doesn't trust this server's certificate") {
		t.Errorf("the log says %q", said)
	}
}

// TestCertificatesAreReplacedWhileRunning: both sides get certificates of new
// authorities; the present session stays, the next connection is held to them.
func TestCertificatesAreReplacedWhileRunning(t *testing.T) {
	p, next := newPKI(t), newPKI(t)
	ovs := ovstest.Start(t)
	ovs.AddBridge("br0", 0x42, "p1")
	ovs.SetTLS(p.sw.Cert, p.sw.Key, p.sw.CA)
	c, log := startTLS(t, ovs.Listen(), p.server, nil)
	asMaster(c)
	ovs.SetControllerTLS("br0", c.addr)
	s := c.master(t, 0x42)

	p.server.Put(t, next.controllers.Issue("kvnet"), next.switches)
	if err := s.Bundle(until(t), []openflow.Message{add(t, 1, output(1))}); err != nil {
		t.Errorf("the session that was there: %v", err)
	}
	s.Close("test")
	eventually(t, "the switch doesn't trust the new server", func() bool { return len(log.refusals()) > 0 })
	if n := len(log.lines("read again")); n != 1 {
		t.Errorf("the files were read again %d times", n)
	}
	p.sw.Put(t, next.switches.Issue("switch"), next.controllers) // Open vSwitch looks by itself
	if again := c.master(t, 0x42); again == s {
		t.Error("the same session")
	}
}

// TestCertificatesOfOVSPKI takes the way that the documentation shows.
func TestCertificatesOfOVSPKI(t *testing.T) {
	dir := t.TempDir()
	for _, args := range [][]string{{"init"}, {"req+sign", "kvnet", "controller"}, {"req+sign", "node1", "switch"}} {
		cmd := exec.CommandContext(until(t), "ovs-pki", append([]string{"--batch", "--dir=" + filepath.Join(dir, "pki"), "--log=" + filepath.Join(dir, "log")}, args...)...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("ovs-pki %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	in := func(name string) string { return filepath.Join(dir, name) }
	ovs := ovstest.Start(t)
	ovs.AddBridge("br0", 0x42, "p1")
	ovs.SetTLS(in("node1-cert.pem"), in("node1-privkey.pem"), in("pki/controllerca/cacert.pem"))
	c, _ := startTLS(t, ovs.Listen(), tlstest.Files{
		Cert: in("kvnet-cert.pem"), Key: in("kvnet-privkey.pem"), CA: in("pki/switchca/cacert.pem"),
	}, nil)
	asMaster(c)
	ovs.SetControllerTLS("br0", c.addr)
	c.master(t, 0x42)
}
