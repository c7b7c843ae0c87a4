package openflow

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"time"
)

// secure completes the TLS handshake of a connection, in its own goroutine and in
// limited time. It is false if the connection is over.
func (s *Server) secure(ctx context.Context, conn *tls.Conn) bool {
	handshake, cancel := context.WithTimeout(ctx, s.cfg.HandshakeTimeout)
	defer cancel()
	err := conn.HandshakeContext(handshake)
	if err == nil {
		s.refused.forget(host(conn))
		return true
	}
	// Closing the TLS connection would wait for a peer that reads.
	conn.NetConn().Close()
	if ctx.Err() != nil {
		return false // this server stops
	}
	reason, subject := tlsReason(err)
	level := slog.LevelDebug
	if s.refused.add(host(conn), reason) {
		level = slog.LevelWarn
	}
	log := s.cfg.Logger.With("address", conn.RemoteAddr().String(), "reason", reason)
	if subject != "" {
		log = log.With("certificate", subject)
	}
	log.Log(ctx, level, "connection of a switch over TLS refused")
	s.tlsFailures.Add(1) // after the log: who sees the count finds the line
	return false
}

// TLSFailures counts the connections over TLS that ended before the switch had
// shown a certificate that is accepted.
func (s *Server) TLSFailures() uint64 { return s.tlsFailures.Load() }

// tlsReason says why a handshake failed, in the same words each time, and whose
// certificate was refused.
func tlsReason(err error) (reason, subject string) {
	var (
		noTLS   tls.RecordHeaderError
		refused *tls.CertificateVerificationError
		invalid x509.CertificateInvalidError
		network *net.OpError
	)
	if errors.As(err, &refused) && len(refused.UnverifiedCertificates) > 0 {
		subject = clip(refused.UnverifiedCertificates[0].Subject.String())
	}
	switch {
	case errors.As(err, &noTLS):
		reason = "it doesn't speak TLS"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		reason = "it took too long for the TLS handshake"
	case errors.Is(err, io.EOF):
		reason = "it closed the connection in the TLS handshake"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired && invalid.Cert != nil:
		// The error's own words have the present time in them.
		reason = fmt.Sprintf("its certificate has expired or isn't valid yet (it is from %s to %s)",
			invalid.Cert.NotBefore.UTC().Format(time.DateTime), invalid.Cert.NotAfter.UTC().Format(time.DateTime))
	case refused != nil:
		reason = "its certificate is refused: " + refused.Err.Error()
	case errors.As(err, &network) && strings.HasSuffix(network.Err.Error(), "bad record MAC"):
		// OpenSSL says in clear, in the middle of what is encrypted, that it doesn't
		// trust a certificate (TLS 1.3).
		reason = "it broke off the TLS handshake; probably it doesn't trust this server's certificate (" + network.Err.Error() + ")"
	case errors.As(err, &network):
		// Without the addresses, of which the port is another one each time.
		reason = network.Op + ": " + network.Err.Error()
	default:
		reason = err.Error()
	}
	return clip(reason), subject
}

// clip shortens a text that a stranger may have made as long as he likes.
func clip(text string) string {
	const limit = 300
	if len(text) > limit {
		text = text[:limit] + "…"
	}
	return text
}

// complaints remembers who was refused for which reason, so that a switch that
// tries again every few seconds is complained of once.
type complaints struct {
	mu   sync.Mutex
	said map[complaint]struct{}
}

type complaint struct{ host, reason string }

// maxComplaints bounds what is remembered. When there are more, all begin anew.
const maxComplaints = 1000

// add tells whether the complaint is a new one.
func (c *complaints) add(host, reason string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := complaint{host, reason}
	if _, ok := c.said[k]; ok {
		return false
	}
	if c.said == nil || len(c.said) >= maxComplaints {
		c.said = map[complaint]struct{}{}
	}
	c.said[k] = struct{}{}
	return true
}

// forget is for a host with which all is well.
func (c *complaints) forget(host string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for k := range c.said {
		if k.host == host {
			delete(c.said, k)
		}
	}
}
