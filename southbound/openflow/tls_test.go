package openflow_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kvnet/internal/tlstest"
	"kvnet/southbound/openflow"
	"kvnet/southbound/openflow/oftest"
	"kvnet/southbound/openflow/wire"
)

func loopback(t *testing.T) net.Listener {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return ln
}

// connect plays a switch over TLS until the session ends.
func connect(t *testing.T, c *controller, settings *tls.Config) (ended <-chan struct{}) {
	t.Helper()
	conn, err := tls.DialWithDialer(&net.Dialer{Timeout: 10 * time.Second}, "tcp", c.addr.String(), settings)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	done := make(chan struct{})
	go func() { defer close(done); _ = oftest.New(3, "p1").Serve(conn) }()
	return done
}

// client are the settings of the switch.
func (p pki) client(t *testing.T) *tls.Config {
	return &tls.Config{RootCAs: p.controllers.Pool(), ServerName: "127.0.0.1", Certificates: []tls.Certificate{p.switches.Issue("switch").TLS(t)}}
}

func TestSessionOverTLS(t *testing.T) {
	p := newPKI(t)
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		c, _ := startTLS(t, loopback(t), p.server, nil)
		asMaster(c)
		settings := p.client(t)
		settings.MinVersion, settings.MaxVersion = version, version
		ended := connect(t, c, settings)
		s := c.master(t, 3)
		if err := s.Bundle(until(t), []openflow.Message{add(t, 1, output(1)), add(t, 2, output(1))}); err != nil {
			t.Errorf("%s: bundle: %v", tls.VersionName(version), err)
		}
		if sw := c.db.Snapshot().Switch(3); sw == nil || !sw.TLS {
			t.Errorf("%s: the switch: %+v", tls.VersionName(version), sw)
		}
		s.Close("test")
		<-ended
	}
}

// TestWhoIsRefusedOverTLS: what is no switch of ours doesn't come to a session,
// and the log says why.
func TestWhoIsRefusedOverTLS(t *testing.T) {
	p := newPKI(t)
	expired := p.switches.IssueAs(&x509.Certificate{Subject: pkix.Name{CommonName: "old"}, NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: time.Now().Add(-time.Hour)})
	long := tlstest.NewCA(t).Issue(strings.Repeat("x", 10_000))
	handshake := func(change func(*tls.Config)) func(net.Conn) {
		return func(conn net.Conn) {
			settings := p.client(t)
			change(settings)
			_ = tls.Client(conn, settings).Handshake() // with TLS 1.3 the refusal comes later
		}
	}
	send := func(b []byte) func(net.Conn) {
		return func(conn net.Conn) {
			if _, err := conn.Write(b); err != nil {
				t.Error(err)
			}
		}
	}
	const tooLong = "too long"
	for name, test := range map[string]struct {
		do   func(net.Conn)
		want string
	}{
		"no certificate":      {handshake(func(c *tls.Config) { c.Certificates = nil }), "didn't provide a certificate"},
		"another authority's": {handshake(func(c *tls.Config) { c.Certificates[0] = tlstest.NewCA(t).Issue("x").TLS(t) }), "unknown authority"},
		"a long name":         {handshake(func(c *tls.Config) { c.Certificates[0] = long.TLS(t) }), "xxx…"},
		"an expired one":      {handshake(func(c *tls.Config) { c.Certificates[0] = expired.TLS(t) }), "has expired"},
		"TLS 1.1":             {handshake(func(c *tls.Config) { c.MinVersion, c.MaxVersion = tls.VersionTLS10, tls.VersionTLS11 }), "versions"},
		"distrust":            {handshake(func(c *tls.Config) { c.RootCAs = x509.NewCertPool() }), "remote error"},
		"OpenFlow in clear":   {send(hello()), "doesn't speak TLS"},
		"HTTP":                {send([]byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n")), "doesn't speak TLS"},
		"a garbled hello":     {send([]byte{22, 3, 1, 0, 8, 1, 0, 0, 4, 1, 2, 3, 4}), "tls"},
		"nothing":             {func(conn net.Conn) { _ = conn.(*net.TCPConn).CloseWrite() }, "closed the connection"},
		"silence":             {func(net.Conn) {}, tooLong},
		"half a record":       {send([]byte{22, 3, 1, 0, 200, 1}), tooLong},
	} {
		t.Run(name, func(t *testing.T) {
			c, log := startTLS(t, loopback(t), p.server, func(c *openflow.Config) {
				if test.want == tooLong {
					c.HandshakeTimeout = 50 * time.Millisecond
				}
			})
			asMaster(c)
			for range 2 {
				conn, err := net.Dial("tcp", c.addr.String())
				if err != nil {
					t.Fatal(err)
				}
				if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
					t.Fatal(err)
				}
				test.do(conn)
				answer, _ := io.ReadAll(conn) // until the server closes the connection
				if bytes.Contains(answer, []byte{wire.Version, wire.TypeHello, 0}) {
					t.Errorf("a session began: % x", answer)
				}
				conn.Close()
			}
			eventually(t, "both are counted", func() bool { return c.TLSFailures() == 2 })
			if said := log.lines(""); len(said) != 1 || !strings.Contains(said[0], "level=WARN") || !strings.Contains(said[0], test.want) || len(said[0]) > 1000 {
				t.Errorf("the log says %q", said)
			}
		})
	}
}

// TestSlowClientsHoldNobodyUp: a switch connects while others are in the middle of
// the handshake, for as long as they like.
func TestSlowClientsHoldNobodyUp(t *testing.T) {
	p := newPKI(t)
	c, _ := startTLS(t, loopback(t), p.server, func(c *openflow.Config) { c.HandshakeTimeout = time.Hour })
	asMaster(c)
	for range 50 {
		conn, err := net.Dial("tcp", c.addr.String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := conn.Write([]byte{22, 3, 1}); err != nil {
			t.Fatal(err)
		}
	}
	ended := connect(t, c, p.client(t))
	c.master(t, 3).Close("test")
	<-ended
	if n := c.TLSFailures(); n != 0 {
		t.Errorf("%d clients were refused meanwhile", n)
	}
}

// TestWhatChangesIsSaidAgain: after a success, and for another reason.
func TestWhatChangesIsSaidAgain(t *testing.T) {
	p := newPKI(t)
	c, log := startTLS(t, loopback(t), p.server, nil)
	asMaster(c)
	garbage := func(want int) {
		t.Helper()
		before := c.TLSFailures()
		r := dial(t, c)
		r.send(hello())
		r.expectEnd()
		eventually(t, "it is counted", func() bool { return c.TLSFailures() > before })
		if n := len(log.refusals()); n != want {
			t.Errorf("%d complaints, want %d", n, want)
		}
	}
	garbage(1)
	garbage(1)
	ended := connect(t, c, p.client(t))
	c.master(t, 3).Close("test")
	<-ended
	garbage(2)
}

func TestFilesForTLSThatCannotWorkAreRefused(t *testing.T) {
	p := newPKI(t)
	good, other := p.server, newPKI(t).server
	absent, empty := filepath.Join(t.TempDir(), "absent.pem"), filepath.Join(t.TempDir(), "empty.pem")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		files openflow.TLSFiles
		want  string
	}{
		{openflow.TLSFiles{Cert: good.Cert, Key: good.Key}, "authority"},
		{openflow.TLSFiles{Cert: good.Cert, CA: good.CA}, "key"},
		{openflow.TLSFiles{Key: good.Key, CA: good.CA}, "certificate"},
		{openflow.TLSFiles{Cert: absent, Key: good.Key, CA: good.CA}, absent},
		{openflow.TLSFiles{Cert: good.Cert, Key: absent, CA: good.CA}, absent},
		{openflow.TLSFiles{Cert: good.Cert, Key: good.Key, CA: absent}, absent},
		{openflow.TLSFiles{Cert: good.Cert, Key: other.Key, CA: good.CA}, other.Key},
		{openflow.TLSFiles{Cert: good.Cert, Key: good.Key, CA: empty}, empty},
		{openflow.TLSFiles{Cert: good.Cert, Key: good.Key, CA: good.Key}, "no certificate of an authority"},
	} {
		if _, err := openflow.NewTLS(c.files, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %s", fmt.Sprint(c.files), err, c.want)
		}
	}
}
