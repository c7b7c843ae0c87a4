package rest

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
)

// TLSConfig names the files of the certificate and its key, both PEM. Without
// them REST speaks HTTP. The files are read again when they change.
type TLSConfig struct {
	CertFile, KeyFile string
}

// keyPair is one version of the certificate and its key. It never changes.
type keyPair struct {
	tls.Certificate
	files pairVersion
}

// pairVersion tells two versions of the pair of files apart.
type pairVersion struct{ cert, key fileVersion }

func (v pairVersion) same(w pairVersion) bool { return v.cert.same(w.cert) && v.key.same(w.key) }

// certificate is the present pair.
type certificate struct {
	TLSConfig
	log *slog.Logger

	current atomic.Pointer[keyPair]
	// loading is held by whoever reads the files again. It guards what follows:
	// the version that could not be used, and what was said about the last one.
	loading sync.Mutex
	failed  pairVersion
	said    string
}

// newTLS makes the TLS settings of REST; nil: it speaks HTTP.
func newTLS(c TLSConfig, log *slog.Logger) (*tls.Config, error) {
	switch {
	case c == TLSConfig{}:
		return nil, nil
	case c.CertFile == "" || c.KeyFile == "":
		return nil, errors.New("TLS needs both a certificate (--rest-tls-cert) and its key (--rest-tls-key)")
	}
	cert := &certificate{TLSConfig: c, log: log}
	v, err := cert.version()
	if err == nil {
		err = cert.load(v)
	}
	if err != nil {
		return nil, err
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: cert.get}, nil
}

func (c *certificate) version() (v pairVersion, err error) {
	if v.cert, err = versionOf(c.CertFile); err != nil {
		return v, fmt.Errorf("read the certificate of REST: %w", err)
	}
	if v.key, err = versionOf(c.KeyFile); err != nil {
		return v, fmt.Errorf("read the key of REST: %w", err)
	}
	return v, nil
}

// load reads the files, which had this version before.
func (c *certificate) load(v pairVersion) error {
	pair, err := tls.LoadX509KeyPair(c.CertFile, c.KeyFile)
	if err != nil {
		return fmt.Errorf("read the certificate of REST from %s with the key from %s: %w", c.CertFile, c.KeyFile, err)
	}
	c.current.Store(&keyPair{pair, v})
	return nil
}

// get returns the present certificate. Files that have changed are read again; a
// pair that can't be used, as while only one of the two is new, leaves the
// certificate as it was.
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	v, err := c.version()
	if err == nil && v.same(c.current.Load().files) || !c.loading.TryLock() {
		return &c.current.Load().Certificate, nil
	}
	defer c.loading.Unlock()
	if err == nil && !v.same(c.current.Load().files) && !v.same(c.failed) {
		if err = c.load(v); err == nil {
			c.failed, c.said = pairVersion{}, ""
			c.log.Info("the certificate of REST was read again", "file", c.CertFile)
		} else {
			c.failed = v
		}
	}
	if err != nil && err.Error() != c.said {
		c.said = err.Error()
		c.log.Error("the new certificate of REST can't be used, the former one stays", "error", err)
	}
	return &c.current.Load().Certificate, nil
}
