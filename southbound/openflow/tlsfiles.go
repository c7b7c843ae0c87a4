package openflow

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"

	"kvnet/internal/reread"
)

// TLSFiles names the PEM files for connections of switches over TLS: this server's
// certificate with its key, and the authority that signs the switches'
// certificates. All three are needed.
type TLSFiles struct{ Cert, Key, CA string }

// NewTLS makes the settings for a listener (tls.NewListener) that takes switches
// with a certificate of the authority only. Files that change are read again, and
// count for the next connection.
func NewTLS(f TLSFiles, log *slog.Logger) (*tls.Config, error) {
	if f.Cert == "" || f.Key == "" || f.CA == "" {
		return nil, errors.New("TLS for switches needs a certificate, its key and an authority")
	}
	files, err := reread.New("the certificate for switches", log, f.load, f.Cert, f.Key, f.CA)
	if err != nil {
		return nil, err
	}
	return &tls.Config{
		MinVersion:         tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return files.Get(), nil },
	}, nil
}

func (f TLSFiles) load() (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(f.Cert, f.Key)
	if err != nil {
		return nil, fmt.Errorf("%s with the key %s: %w", f.Cert, f.Key, err)
	}
	authority, err := os.ReadFile(f.CA)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(authority) {
		return nil, fmt.Errorf("%s: there is no certificate of an authority in it", f.CA)
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair},
		ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool,
		// Each connection shows its certificate to the present authority.
		SessionTicketsDisabled: true,
	}, nil
}
