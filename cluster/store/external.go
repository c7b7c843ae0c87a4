package store

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// maxMessage bounds a request to an external cluster. The server's own limit is
// usually smaller, and its answer is clearer.
const maxMessage = 16 << 20

// dial makes a client of an external cluster. It doesn't wait for an answer.
func dial(life context.Context, c Config) (*clientv3.Client, error) {
	cfg := clientv3.Config{
		Endpoints:            c.Endpoints,
		Username:             c.Username,
		Password:             c.Password,
		DialTimeout:          c.OpTimeout,
		DialKeepAliveTime:    10 * time.Second,
		DialKeepAliveTimeout: 5 * time.Second,
		MaxCallSendMsgSize:   maxMessage,
		Context:              life,
		Logger:               engineLog(c.Logger, nil, nil),
	}
	for _, e := range c.Endpoints {
		if strings.HasPrefix(e, "https://") {
			t, err := clientTLS(c)
			if err != nil {
				return nil, err
			}
			cfg.TLS = t
			break
		}
	}
	return clientv3.New(cfg)
}

// clientTLS reads the files for https. The own certificate is read again for
// each connection, so that a renewed one counts without a restart.
func clientTLS(c Config) (*tls.Config, error) {
	t := &tls.Config{MinVersion: tls.VersionTLS12}
	if c.CAFile != "" {
		pem, err := os.ReadFile(c.CAFile)
		if err != nil {
			return nil, fmt.Errorf("read the store's CA certificates: %w", err)
		}
		t.RootCAs = x509.NewCertPool()
		if !t.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("read the store's CA certificates: there are none in %q", c.CAFile)
		}
	}
	if c.CertFile != "" || c.KeyFile != "" {
		load := func() (*tls.Certificate, error) {
			cert, err := tls.LoadX509KeyPair(c.CertFile, c.KeyFile)
			if err != nil {
				return nil, fmt.Errorf("read the certificate for the store: %w", err)
			}
			return &cert, nil
		}
		if _, err := load(); err != nil {
			return nil, err
		}
		t.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return load() }
	}
	return t, nil
}
