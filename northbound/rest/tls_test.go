package rest

import (
	"bufio"
	"crypto/tls"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kvnet/internal/tlstest"
)

// writeCertificate makes a certificate with this name and writes it with its key.
func writeCertificate(t *testing.T, c TLSConfig, name string) (*tlstest.CA, tlstest.Pair) {
	t.Helper()
	ca := tlstest.NewCA(t)
	pair := ca.Issue(name)
	tlstest.Replace(t, c.CertFile, pair.Cert)
	tlstest.Replace(t, c.KeyFile, pair.Key)
	return ca, pair
}

func tlsFiles(t *testing.T) TLSConfig {
	dir := t.TempDir()
	return TLSConfig{CertFile: filepath.Join(dir, "cert.pem"), KeyFile: filepath.Join(dir, "key.pem")}
}

// shownName is the name in the certificate that a new connection is shown.
func shownName(t *testing.T, address string) string {
	t.Helper()
	c, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	return c.ConnectionState().PeerCertificates[0].Subject.CommonName
}

func TestTLS(t *testing.T) {
	files := tlsFiles(t)
	ca, _ := writeCertificate(t, files, "first")
	l := newLab(t, func(c *Config) { c.TLS = files })
	roots := ca.Pool()
	address := l.server.Addr().String()
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		for _, http2 := range []bool{false, true} {
			transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MaxVersion: version}, ForceAttemptHTTP2: http2}
			client := &http.Client{Transport: transport, Timeout: 10 * time.Second}
			req, err := http.NewRequest("POST", "https://"+address+networksPath, strings.NewReader(networkBody("n")))
			if err != nil {
				t.Fatal(err)
			}
			req.SetBasicAuth("onos", "rocks")
			resp, err := client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			transport.CloseIdleConnections()
			if resp.StatusCode != 201 || resp.Header.Get("Location") != "https://"+address+networksPath+"/n" || (resp.ProtoMajor == 2) != http2 {
				t.Errorf("%s %s, Location %q", resp.Proto, resp.Status, resp.Header.Get("Location"))
			}
			l.client = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
			del, err := http.NewRequest("DELETE", "https://"+address+networksPath+"/n", nil)
			if err != nil {
				t.Fatal(err)
			}
			del.SetBasicAuth("onos", "rocks")
			if resp, err = l.client.Do(del); err != nil || resp.StatusCode != 204 {
				t.Fatalf("%v %v", resp, err)
			}
			_ = resp.Body.Close()
			l.client.CloseIdleConnections()
		}
	}
	if c, err := tls.Dial("tcp", address, &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}); err == nil {
		_ = c.Close()
		t.Error("TLS 1.1 is accepted")
	}
}

// TestHTTPToTheTLSPort is told what is wrong.
func TestHTTPToTheTLSPort(t *testing.T) {
	files := tlsFiles(t)
	writeCertificate(t, files, "x")
	l := newLab(t, func(c *Config) { c.TLS = files })
	c := l.slow("GET " + networksPath + " HTTP/1.1\r\nHost: x\r\n\r\n")
	if err := c.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, _ := bufio.NewReader(resp.Body).ReadString('\n')
	if resp.StatusCode != 400 || !strings.Contains(text, "HTTPS") {
		t.Errorf("%s %q", resp.Status, text)
	}
}

// TestCertificateIsReadAgain: a pair that fits counts for the next connection, one
// that doesn't leaves the former one.
func TestCertificateIsReadAgain(t *testing.T) {
	files := tlsFiles(t)
	writeCertificate(t, files, "first")
	var log syncBuffer
	l := newLab(t, func(c *Config) {
		c.TLS, c.Logger = files, slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelInfo}))
	})
	address := l.server.Addr().String()
	want := func(name string) {
		t.Helper()
		for range 3 {
			if got := shownName(t, address); got != name {
				t.Errorf("%q, want %q", got, name)
			}
		}
	}
	want("first")
	_, second := writeCertificate(t, files, "second")
	want("second")
	writeCertificate(t, files, "third")
	tlstest.Replace(t, files.KeyFile, second.Key) // of the second
	want("second")
	if err := os.Remove(files.CertFile); err != nil {
		t.Fatal(err)
	}
	want("second")
	tlstest.Replace(t, files.CertFile, []byte("nonsense"))
	want("second")
	if n := strings.Count(log.String(), "level=ERROR"); n != 3 {
		t.Errorf("%d errors for 3 bad pairs:\n%s", n, log.String())
	}
	tlstest.Replace(t, files.CertFile, second.Cert)
	want("second")
	writeCertificate(t, files, "fourth")
	want("fourth")
}

func TestUnusablePairsAreRefused(t *testing.T) {
	good, other := tlsFiles(t), tlsFiles(t)
	writeCertificate(t, good, "a")
	writeCertificate(t, other, "b")
	absent := good.CertFile + ".absent"
	for _, c := range []struct {
		TLSConfig
		want string
	}{
		{TLSConfig{CertFile: good.CertFile}, "--rest-tls-key"},
		{TLSConfig{KeyFile: good.KeyFile}, "--rest-tls-cert"},
		{TLSConfig{CertFile: good.CertFile, KeyFile: absent}, absent},
		{TLSConfig{CertFile: absent, KeyFile: good.KeyFile}, absent},
		{TLSConfig{CertFile: good.CertFile, KeyFile: other.KeyFile}, other.KeyFile},
		{TLSConfig{CertFile: good.KeyFile, KeyFile: good.KeyFile}, good.KeyFile},
	} {
		s, err := New(Config{Listen: "127.0.0.1:0", MetricsListen: "-", Store: &faultyStore{}, DB: emptyState(), Inspector: quiet{},
			Logger: slog.New(slog.DiscardHandler), TLS: c.TLSConfig})
		if err == nil {
			_ = s.Close()
			t.Errorf("%+v: no error", c.TLSConfig)
		} else if !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c.TLSConfig, err)
		}
	}
}

// TestPasswordsInClearAreWarnedOf once, and only where others can listen.
func TestPasswordsInClearAreWarnedOf(t *testing.T) {
	files := tlsFiles(t)
	writeCertificate(t, files, "x")
	for _, c := range []struct {
		listen string
		tls    TLSConfig
		want   int
	}{
		{"0.0.0.0:0", TLSConfig{}, 1},
		{"0.0.0.0:0", files, 0},
		{"127.0.0.1:0", TLSConfig{}, 0},
	} {
		var log syncBuffer
		newLab(t, func(cfg *Config) {
			cfg.Listen, cfg.TLS, cfg.Accounts.AllowDefaults = c.listen, c.tls, true
			cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
		})
		if n := strings.Count(log.String(), "in clear"); n != c.want {
			t.Errorf("%s %+v: %d warnings\n%s", c.listen, c.tls, n, log.String())
		}
	}
}
