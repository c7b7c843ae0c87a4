package store

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	"go.etcd.io/etcd/server/v3/embed"

	"kvnet/internal/tlstest"
	"kvnet/model"
	"kvnet/model/state"
)

// external runs an etcd with default limits and a client port, and returns its
// URL.
func external(t *testing.T, change func(*embed.Config)) string {
	t.Helper()
	cfg, err := engineConfig(Config{Dir: t.TempDir(), Listen: "127.0.0.1:0"}.withDefaults(), Identity{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	u := url.URL{Scheme: "http", Host: "127.0.0.1:0"}
	cfg.ListenClientUrls, cfg.AdvertiseClientUrls = []url.URL{u}, []url.URL{u}
	cfg.MaxTxnOps, cfg.MaxRequestBytes = embed.DefaultMaxTxnOps, embed.DefaultMaxRequestBytes
	cfg.ZapLoggerBuilder = embed.NewZapLoggerBuilder(engineLog(testLog(t), nil, nil))
	if change != nil {
		change(cfg)
	}
	e, err := embed.StartEtcd(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	select {
	case <-e.Server.ReadyNotify():
	case <-ctx(t).Done():
		t.Fatal("the external etcd was not ready in time")
	}
	return cfg.ListenClientUrls[0].Scheme + "://" + e.Clients[0].Addr().String()
}

func TestAnExternalClusterIsTheSame(t *testing.T) {
	c := Config{Endpoints: []string{external(t, nil)}, Logger: testLog(t)}
	f := open(t, c)
	g := open(t, c) // a second server at the same cluster
	rev, err := f.Create(ctx(t), network("n/1"))
	f.at(rev, err)
	if g.at(rev, nil).Network("n/1") == nil {
		t.Fatal("the second server does not see it")
	}
	_, err = g.Create(ctx(t), network("n/1"))
	wantErr(t, err, ErrExists)
	g.at(g.Create(ctx(t), router("r")))
	g.at(g.Create(ctx(t), fip("f", "r")))
	_, err = f.Delete(ctx(t), model.KindRouter, "r")
	wantErr(t, err, ErrInUse)

	a := takeTerm(f, "a", "1")
	b := takeTerm(g, "b", "1")
	_, err = f.Decide(ctx(t), a, []Decision{{New: routerStatus("r", "g")}})
	wantErr(t, err, ErrNotLeader)
	var d []Decision
	for i := range 300 { // more than one transaction of such a server may hold
		d = append(d, Decision{New: routerStatus(fmt.Sprint(i), "g")})
	}
	rev, err = g.Decide(ctx(t), b, d)
	if n := f.at(rev, err).Len(model.KindRouterStatus); n != len(d) {
		t.Fatalf("%d of %d decisions", n, len(d))
	}
	ida, err := f.ClusterID(ctx(t))
	if err != nil {
		t.Fatal(err)
	}
	if idb, err := g.ClusterID(ctx(t)); err != nil || ida != idb {
		t.Fatalf("cluster ids %q and %q, %v", ida, idb, err)
	}

	var writes []Write
	for i := range 200 {
		writes = append(writes, Write{New: network(fmt.Sprint(i))})
	}
	_, err = f.Put(ctx(t), writes)
	wantErr(t, err, ErrTooLarge)
	big := network("big")
	for _, n := range []int{2 << 20, 20 << 20} { // over the server's limit, over the client's
		big.Name = strings.Repeat("x", n)
		_, err = f.Create(ctx(t), big)
		wantErr(t, err, ErrTooLarge)
	}
	f.at(f.Create(ctx(t), network("after")))
}

func TestAnExternalClusterWithATLSServer(t *testing.T) {
	ca := tlstest.NewCA(t)
	files := tlstest.NewFiles(t, ca.Issue("etcd"), ca)
	endpoint := external(t, func(cfg *embed.Config) {
		u := url.URL{Scheme: "https", Host: "127.0.0.1:0"}
		cfg.ListenClientUrls, cfg.AdvertiseClientUrls = []url.URL{u}, []url.URL{u}
		cfg.ClientTLSInfo = transport.TLSInfo{CertFile: files.Cert, KeyFile: files.Key, TrustedCAFile: files.CA, ClientCertAuth: true}
	})
	c := Config{Endpoints: []string{endpoint}, CertFile: files.Cert, KeyFile: files.Key, CAFile: files.CA, Logger: testLog(t), OpenTimeout: 10 * time.Second}
	f := open(t, c)
	f.at(f.Create(ctx(t), network("n")))

	for name, change := range map[string]func(*Config){
		"no certificate": func(c *Config) { c.CertFile, c.KeyFile = "", "" },
		"another CA":     func(c *Config) { c.CAFile = "" },
	} {
		t.Run(name, func(t *testing.T) {
			c := c
			change(&c)
			c.OpenTimeout = time.Second
			s, err := Open(context.Background(), c, state.New())
			if err == nil {
				t.Error(s.Close())
			}
			wantErr(t, err, ErrUnavailable)
		})
	}
	for name, change := range map[string]func(*Config){
		"missing CA":          func(c *Config) { c.CAFile = files.CA + ".none" },
		"empty CA":            func(c *Config) { c.CAFile = os.DevNull },
		"missing certificate": func(c *Config) { c.CertFile = files.Cert + ".none" },
		"no key":              func(c *Config) { c.KeyFile = "" },
	} {
		t.Run(name, func(t *testing.T) {
			c := c
			change(&c)
			if s, err := Open(ctx(t), c, state.New()); err == nil {
				t.Errorf("opened; close: %v", s.Close())
			}
		})
	}
}

func TestAnAbsentExternalClusterIsAnErrorInTime(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	silent := ln.Addr().String() // accepts and never answers
	defer ln.Close()
	for _, endpoint := range []string{"http://" + silent, "http://127.0.0.1:1"} {
		s, err := Open(context.Background(), Config{Endpoints: []string{endpoint}, Logger: testLog(t), OpenTimeout: 300 * time.Millisecond}, state.New())
		if err == nil {
			t.Error(s.Close())
		}
		wantErr(t, err, ErrUnavailable)
		if !strings.Contains(err.Error(), endpoint) {
			t.Errorf("the error does not say where: %v", err)
		}
	}
}
