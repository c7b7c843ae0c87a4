package rest

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"

	"kvnet/internal/reread"
)

// TLSConfig names the files of the certificate and its key, both PEM. Without
// them REST speaks HTTP. The files are read again when they change.
type TLSConfig struct {
	CertFile, KeyFile string
}

// newTLS makes the TLS settings of REST; nil: it speaks HTTP.
func newTLS(c TLSConfig, log *slog.Logger) (*tls.Config, error) {
	switch {
	case c == TLSConfig{}:
		return nil, nil
	case c.CertFile == "" || c.KeyFile == "":
		return nil, errors.New("TLS needs both a certificate (--rest-tls-cert) and its key (--rest-tls-key)")
	}
	load := func() (*tls.Certificate, error) {
		pair, err := tls.LoadX509KeyPair(c.CertFile, c.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("%s with the key %s: %w", c.CertFile, c.KeyFile, err)
		}
		return &pair, nil
	}
	cert, err := reread.New("the certificate of REST", log, load, c.CertFile, c.KeyFile)
	if err != nil {
		return nil, err
	}
	return &tls.Config{
		MinVersion:     tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return cert.Get(), nil },
	}, nil
}
