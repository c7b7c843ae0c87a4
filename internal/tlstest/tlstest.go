// Package tlstest makes certificate authorities and certificates for tests.
package tlstest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// CA is a certificate authority.
type CA struct {
	t    testing.TB
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// NewCA makes an authority.
func NewCA(t testing.TB) *CA {
	t.Helper()
	a := &CA{t: t}
	var der []byte
	der, a.key = a.sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: "authority"},
		IsCA:    true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	})
	var err error
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	return a
}

// sign makes a key and a certificate of it, which the authority signs; its own it
// signs itself.
func (a *CA) sign(c *x509.Certificate) (der []byte, key *ecdsa.PrivateKey) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	if c.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120)); err != nil {
		a.t.Fatal(err)
	}
	if c.NotAfter.IsZero() {
		c.NotBefore, c.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	}
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = c, key
	}
	if der, err = x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, signer); err != nil {
		a.t.Fatal(err)
	}
	return der, key
}

// PEM is the certificate of the authority.
func (a *CA) PEM() []byte { return encode("CERTIFICATE", a.cert.Raw) }

// Pool trusts the authority and nobody else.
func (a *CA) Pool() *x509.CertPool {
	p := x509.NewCertPool()
	p.AddCert(a.cert)
	return p
}

// Pair is a certificate and its key, in PEM.
type Pair struct{ Cert, Key []byte }

// Issue makes a certificate with this name for servers and clients at 127.0.0.1.
func (a *CA) Issue(name string) Pair {
	a.t.Helper()
	return a.IssueAs(&x509.Certificate{Subject: pkix.Name{CommonName: name}})
}

// IssueAs is Issue for a certificate with further properties, such as a time of its
// own.
func (a *CA) IssueAs(c *x509.Certificate) Pair {
	a.t.Helper()
	c.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
	c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	der, key := a.sign(c)
	encoded, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	return Pair{encode("CERTIFICATE", der), encode("EC PRIVATE KEY", encoded)}
}

// TLS is the pair as crypto/tls wants it.
func (p Pair) TLS(t testing.TB) tls.Certificate {
	t.Helper()
	c, err := tls.X509KeyPair(p.Cert, p.Key)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Files are the paths of a certificate, its key and an authority.
type Files struct{ Cert, Key, CA string }

// NewFiles writes a pair and the authority that it is to be used with into a
// directory of their own.
func NewFiles(t testing.TB, p Pair, trusted *CA) Files {
	t.Helper()
	dir := t.TempDir()
	f := Files{filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"), filepath.Join(dir, "ca.pem")}
	f.Put(t, p, trusted)
	return f
}

// Put writes a pair and an authority in the place of the former ones.
func (f Files) Put(t testing.TB, p Pair, trusted *CA) {
	t.Helper()
	Replace(t, f.Cert, p.Cert)
	Replace(t, f.Key, p.Key)
	Replace(t, f.CA, trusted.PEM())
}

// Replace puts a file in the place of another one at once.
func Replace(t testing.TB, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path+".new", content, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
