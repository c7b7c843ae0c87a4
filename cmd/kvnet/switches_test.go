package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"kvnet/internal/tlstest"
	"kvnet/southbound/openflow/oftest"
)

// overTLS changes settings so that switches connect over TLS only.
func overTLS(t *testing.T, trusted *tlstest.CA, shown tlstest.Pair) func(*config) {
	f := tlstest.NewFiles(t, shown, trusted)
	listen := freePort(t)
	return func(c *config) {
		c.openflowListen, c.openflowTLSListen = "-", listen
		c.openflowTLSCert, c.openflowTLSKey, c.openflowTLSCA = f.Cert, f.Key, f.CA
	}
}

func TestSwitchesMayBeMadeToUseTLS(t *testing.T) {
	controllers, switches := tlstest.NewCA(t), tlstest.NewCA(t)
	registry := prometheus.NewRegistry()
	c := startWith(t, t.TempDir(), registry, overTLS(t, switches, controllers.Issue("kvnet")))

	stranger, err := tls.Dial("tcp", c.openflowTLSListen, &tls.Config{InsecureSkipVerify: true})
	if err == nil {
		// With TLS 1.3 the refusal comes after the client's own part.
		_, err = io.ReadAll(stranger)
		_ = stranger.Close()
	}
	if err == nil {
		t.Error("a client without a certificate is not refused")
	}
	eventually(t, "it is counted", func() bool {
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			if f.GetName() == "kvnet_openflow_tls_failures_total" {
				return f.GetMetric()[0].GetCounter().GetValue() == 1
			}
		}
		return false
	})

	conn, err := tls.Dial("tcp", c.openflowTLSListen, &tls.Config{
		RootCAs: controllers.Pool(), Certificates: []tls.Certificate{switches.Issue("switch").TLS(t)},
	})
	if err != nil {
		t.Fatal(err)
	}
	sw, ended := oftest.New(0xa1, "p1"), make(chan struct{})
	go func() { defer close(ended); _ = sw.Serve(conn) }()
	t.Cleanup(func() { _ = conn.Close(); <-ended })
	var body string
	eventually(t, "MASTER over TLS", func() bool {
		_, body = call(t, c, http.MethodGet, "/kvnet/v1/switches", "")
		return strings.Contains(body, `"role":"MASTER"`) && strings.Contains(body, `"tls":true`)
	})
	code, answer := call(t, c, http.MethodPost, "/onos/kubevirtnode/node",
		`{"nodes":[{"hostname":"gw1","type":"GATEWAY","managementIp":"192.0.2.1","integrationBridge":"of:00000000000000a1","tunnelBridge":"of:00000000000000b1"}]}`)
	if code != http.StatusCreated {
		t.Fatal(answer)
	}
	eventually(t, "base rules", func() bool { return len(sw.Rules()) == 4 })
}

func TestListenersForSwitchesThatCannotWorkAreRefused(t *testing.T) {
	ca := tlstest.NewCA(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	for law, test := range map[string]struct {
		change func(*config)
		want   string
	}{
		"the files exist":              {func(c *config) { c.openflowTLSCA = "/nowhere/ca.pem" }, "/nowhere/ca.pem"},
		"the key is the certificate's": {func(c *config) { c.openflowTLSKey = tlstest.NewFiles(t, ca.Issue("b"), ca).Key }, "private key does not match"},
		"the address is free":          {func(c *config) { c.openflowTLSListen = taken.Addr().String() }, "--openflow-tls-listen"},
		"that of TCP, too":             {func(c *config) { c.openflowListen = taken.Addr().String() }, "--openflow-listen"},
	} {
		c := &config{}
		overTLS(t, ca, ca.Issue("a"))(c)
		test.change(c)
		if l, err := listenForSwitches(t.Context(), c, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), test.want) {
			l.close()
			t.Errorf("%s: error %v", law, err)
		}
	}
}

// TestTLSBesideAnOpenPortIsWarnedOf where others can reach that.
func TestTLSBesideAnOpenPortIsWarnedOf(t *testing.T) {
	ca := tlstest.NewCA(t)
	for listen, want := range map[string]int{"-": 0, "127.0.0.1:0": 0, "0.0.0.0:0": 1} {
		var log bytes.Buffer
		c := &config{}
		overTLS(t, ca, ca.Issue("a"))(c)
		c.openflowListen = listen
		l, err := listenForSwitches(context.Background(), c, slog.New(slog.NewTextHandler(&log, nil)))
		if err != nil {
			t.Fatal(err)
		}
		l.close()
		if n := strings.Count(log.String(), "\n"); n != want {
			t.Errorf("--openflow-listen %s: %q", listen, log.String())
		}
	}
}
