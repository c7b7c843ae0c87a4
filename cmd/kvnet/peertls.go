package main

import (
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// peerTLS are the PEM files for TLS between the stores of servers.
type peerTLS struct{ cert, key, ca string }

// The certificates that are made from the gossip key are valid as long as the key
// is: whoever has it can make another.
var (
	peerCertBegin = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	peerCertEnd   = time.Date(2120, 1, 1, 0, 0, 0, 0, time.UTC)
)

// peerTLSFromKey makes the certificate with which this server's store shows the
// others that it has the gossip key. The authority's own key is derived from the
// gossip key, so that all who have it have the same authority without a file more
// to hand around. host is how the others reach this server.
func peerTLSFromKey(dir string, gossipKey []byte, host string) (peerTLS, error) {
	doing := func(err error) (peerTLS, error) {
		return peerTLS{}, fmt.Errorf("make the certificate for the stores of other servers: %w", err)
	}
	seed, err := hkdf.Key(sha256.New, gossipKey, nil, "kvnet store peers, authority, version 1", ed25519.SeedSize)
	if err != nil {
		return doing(err)
	}
	authorityKey := ed25519.NewKeyFromSeed(seed)
	authority := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "kvnet store peers"},
		NotBefore: peerCertBegin, NotAfter: peerCertEnd,
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	// Signatures of this kind have no randomness: all servers make the same bytes.
	authorityDER, err := x509.CreateCertificate(rand.Reader, authority, authority, authorityKey.Public(), authorityKey)
	if err != nil {
		return doing(err)
	}
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return doing(err)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return doing(err)
	}
	leaf := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "kvnet server"},
		NotBefore: peerCertBegin, NotAfter: peerCertEnd,
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	if ip := net.ParseIP(host); ip != nil {
		leaf.IPAddresses = []net.IP{ip}
	} else {
		leaf.DNSNames = []string{host}
	}
	leafDER, err := x509.CreateCertificate(rand.Reader, leaf, authority, public, authorityKey)
	if err != nil {
		return doing(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return doing(err)
	}
	dir = filepath.Join(dir, "peer-tls")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return doing(err)
	}
	out := peerTLS{cert: filepath.Join(dir, "cert.pem"), key: filepath.Join(dir, "key.pem"), ca: filepath.Join(dir, "ca.pem")}
	for _, f := range []struct {
		path, kind string
		der        []byte
	}{{out.cert, "CERTIFICATE", leafDER}, {out.key, "PRIVATE KEY", keyDER}, {out.ca, "CERTIFICATE", authorityDER}} {
		if err := os.WriteFile(f.path, pem.EncodeToMemory(&pem.Block{Type: f.kind, Bytes: f.der}), 0o600); err != nil {
			return doing(err)
		}
	}
	return out, nil
}
