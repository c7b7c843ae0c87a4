package store

import (
	"context"
	"crypto/tls"
	"net/http"
	"strings"
	"testing"
	"time"

	"kvnet/internal/tlstest"
	"kvnet/model/state"
)

func TestMembersSpeakTLSWithTheirOwnCA(t *testing.T) {
	t.Parallel()
	ca, stranger := tlstest.NewCA(t), tlstest.NewCA(t)
	cs := planned(t, "a", "b", "c")
	// Founded without TLS, which is switched on later.
	fs := openAll(t, cs)
	fs["a"].at(fs["a"].Create(ctx(t), network("n")))
	closeAll(fs)
	for n, c := range cs {
		files := tlstest.NewFiles(t, ca.Issue(n), ca)
		c.PeerCertFile, c.PeerKeyFile, c.PeerCAFile, c.Cluster = files.Cert, files.Key, files.CA, Cluster{}
		cs[n] = c
	}
	fs = openAll(t, cs)
	rev, err := fs["b"].Create(ctx(t), network("m"))
	if fs["c"].at(rev, err).Network("n") == nil {
		t.Error("what was there before is gone")
	}

	// Nobody without a certificate of the CA gets in.
	pair := stranger.Issue("stranger")
	for name, certs := range map[string][]tls.Certificate{"no certificate": nil, "another CA's": {pair.TLS(t)}} {
		tr := &http.Transport{TLSClientConfig: &tls.Config{Certificates: certs, InsecureSkipVerify: true}}
		client := http.Client{Transport: tr, Timeout: 30 * time.Second}
		resp, err := client.Get("https://" + cs["a"].Listen + "/members")
		if err == nil {
			t.Errorf("%s: %s", name, resp.Status)
			_ = resp.Body.Close()
		}
		tr.CloseIdleConnections()
	}
	if resp, err := http.Get("http://" + cs["a"].Listen + "/members"); err == nil {
		if resp.StatusCode == http.StatusOK {
			t.Errorf("without TLS: %s", resp.Status)
		}
		_ = resp.Body.Close()
	}
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()

	// A member with another CA's certificate is no member.
	fs["c"].close()
	c := cs["c"]
	files := tlstest.NewFiles(t, pair, ca)
	c.PeerCertFile, c.PeerKeyFile, c.LocalAfter = files.Cert, files.Key, time.Millisecond
	g := open(t, c)
	fs["a"].at(fs["a"].Create(ctx(t), network("k")))
	short, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := g.Linearizable(short); err == nil {
		t.Error("a member with a stranger's certificate is in touch")
	}
}

func TestMembersWithoutTLSOnlyOnLoopback(t *testing.T) {
	ca := tlstest.NewCA(t)
	files := tlstest.NewFiles(t, ca.Issue("a"), ca)
	cert, key := files.Cert, files.Key
	for name, test := range map[string]struct {
		change func(*Config)
		want   string
	}{
		"everywhere":   {func(c *Config) { c.Listen = "0.0.0.0:0" }, "TLS"},
		"another host": {func(c *Config) { c.Listen = "192.0.2.1:0" }, "TLS"},
		"IPv6":         {func(c *Config) { c.Listen = "[::]:0" }, "TLS"},
		"no CA":        {func(c *Config) { c.PeerCertFile, c.PeerKeyFile = cert, key }, "CA"},
		"no key":       {func(c *Config) { c.PeerCertFile, c.PeerCAFile = cert, cert }, "key"},
		"no such file": {func(c *Config) { c.PeerCertFile, c.PeerKeyFile, c.PeerCAFile = cert, key, "/none" }, "/none"},
		"another key":  {func(c *Config) { c.PeerCertFile, c.PeerKeyFile, c.PeerCAFile = cert, cert, cert }, "certificate"},
	} {
		c := config(t)
		test.change(&c)
		if err := openErr(t, c); !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", name, err)
		}
		if HasData(c.Dir) {
			t.Errorf("%s: a store was made", name)
		}
	}
	c := config(t)
	c.Listen, c.AllowPlaintextPeers = "0.0.0.0:0", true
	s, err := Open(ctx(t), c, state.New())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
