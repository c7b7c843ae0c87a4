package store

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kvnet/model/state"
)

// authority is a CA in files.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	file string
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t, file: filepath.Join(t.TempDir(), "ca.pem")}
	var der []byte
	der, a.key = a.sign(&x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}, nil, nil)
	var err error
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	a.write(a.file, "CERTIFICATE", der)
	return a
}

func (a *authority) sign(tmpl, parent *x509.Certificate, signer *ecdsa.PrivateKey) ([]byte, *ecdsa.PrivateKey) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	if parent == nil {
		parent, signer = tmpl, key
	}
	tmpl.SerialNumber = big.NewInt(time.Now().UnixNano())
	tmpl.Subject = pkix.Name{CommonName: "kvnet test"}
	tmpl.NotBefore, tmpl.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	der, err := x509.CreateCertificate(rand.Reader, tmpl, parent, &key.PublicKey, signer)
	if err != nil {
		a.t.Fatal(err)
	}
	return der, key
}

// issue makes a certificate for 127.0.0.1.
func (a *authority) issue() (cert, key string) {
	a.t.Helper()
	der, k := a.sign(&x509.Certificate{
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, a.cert, a.key)
	dir := a.t.TempDir()
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	a.write(cert, "CERTIFICATE", der)
	b, err := x509.MarshalECPrivateKey(k)
	if err != nil {
		a.t.Fatal(err)
	}
	a.write(key, "EC PRIVATE KEY", b)
	return cert, key
}

func (a *authority) write(path, kind string, der []byte) {
	a.t.Helper()
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		a.t.Fatal(err)
	}
}

func TestMembersSpeakTLSWithTheirOwnCA(t *testing.T) {
	t.Parallel()
	ca, stranger := newAuthority(t), newAuthority(t)
	cs := planned(t, "a", "b", "c")
	// Founded without TLS, which is switched on later.
	fs := openAll(t, cs)
	fs["a"].at(fs["a"].Create(ctx(t), network("n")))
	closeAll(fs)
	for n, c := range cs {
		c.PeerCertFile, c.PeerKeyFile = ca.issue()
		c.PeerCAFile, c.Cluster = ca.file, Cluster{}
		cs[n] = c
	}
	fs = openAll(t, cs)
	rev, err := fs["b"].Create(ctx(t), network("m"))
	if fs["c"].at(rev, err).Network("n") == nil {
		t.Error("what was there before is gone")
	}

	// Nobody without a certificate of the CA gets in.
	strangerCert, strangerKey := stranger.issue()
	pair, err := tls.LoadX509KeyPair(strangerCert, strangerKey)
	if err != nil {
		t.Fatal(err)
	}
	for name, certs := range map[string][]tls.Certificate{"no certificate": nil, "another CA's": {pair}} {
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
	c.PeerCertFile, c.PeerKeyFile, c.LocalAfter = strangerCert, strangerKey, time.Millisecond
	g := open(t, c)
	fs["a"].at(fs["a"].Create(ctx(t), network("k")))
	short, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := g.Linearizable(short); err == nil {
		t.Error("a member with a stranger's certificate is in touch")
	}
}

func TestMembersWithoutTLSOnlyOnLoopback(t *testing.T) {
	cert, key := newAuthority(t).issue()
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
