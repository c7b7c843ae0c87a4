package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"

	"kvnet/southbound/openflow"
)

// checkOpenFlow refuses settings of the connections of switches that can't work, in
// words.
func (c *config) checkOpenFlow() error {
	files := 0
	for _, f := range []string{c.openflowTLSCert, c.openflowTLSKey, c.openflowTLSCA} {
		if f != "" {
			files++
		}
	}
	switch {
	case c.openflowTLSListen != "" && files < 3:
		return errors.New("--openflow-tls-listen needs --openflow-tls-cert, --openflow-tls-key and --openflow-tls-ca")
	case c.openflowTLSListen == "" && files > 0:
		return errors.New("--openflow-tls-cert, --openflow-tls-key and --openflow-tls-ca are for --openflow-tls-listen, which is missing")
	case c.openflowTLSListen == "" && c.openflowListen == "-":
		return errors.New("--openflow-listen -: switches can't connect without --openflow-tls-listen")
	}
	return nil
}

// switchListeners are where switches connect. One of them may be nil.
type switchListeners struct{ plain, secure net.Listener }

// listenForSwitches opens the listeners of the settings.
func listenForSwitches(ctx context.Context, c *config, log *slog.Logger) (l switchListeners, err error) {
	defer func() {
		if err != nil {
			l.close()
		}
	}()
	var settings *tls.Config
	if c.openflowTLSListen != "" {
		files := openflow.TLSFiles{Cert: c.openflowTLSCert, Key: c.openflowTLSKey, CA: c.openflowTLSCA}
		if settings, err = openflow.NewTLS(files, log); err != nil {
			return l, fmt.Errorf("--openflow-tls-cert, --openflow-tls-key, --openflow-tls-ca: %w", err)
		}
	}
	var lc net.ListenConfig
	if c.openflowListen != "-" {
		if l.plain, err = lc.Listen(ctx, "tcp", c.openflowListen); err != nil {
			return l, fmt.Errorf("listen for switches on --openflow-listen %s: %w", c.openflowListen, err)
		}
	}
	if settings != nil {
		ln, err := lc.Listen(ctx, "tcp", c.openflowTLSListen)
		if err != nil {
			return l, fmt.Errorf("listen for switches on --openflow-tls-listen %s: %w", c.openflowTLSListen, err)
		}
		l.secure = tls.NewListener(ln, settings)
	}
	if l.secure != nil && l.plain != nil && !onLoopback(c.openflowListen) {
		log.Warn("switches are accepted without TLS, too, on an address that others can reach; --openflow-listen - ends that", "listen", c.openflowListen)
	}
	return l, nil
}

// all are the listeners that are open.
func (l switchListeners) all() (out []net.Listener) {
	for _, ln := range []net.Listener{l.plain, l.secure} {
		if ln != nil {
			out = append(out, ln)
		}
	}
	return out
}

func (l switchListeners) close() {
	for _, ln := range l.all() {
		_ = ln.Close() // what serves it closes it, too
	}
}

// addr is where switches connect, without TLS if that is open.
func (l switchListeners) addr() net.Addr { return l.all()[0].Addr() }

// logged are the addresses as attributes of a log line.
func (l switchListeners) logged() (out []any) {
	if l.plain != nil {
		out = append(out, "openflow", l.plain.Addr().String())
	}
	if l.secure != nil {
		out = append(out, "openflow-tls", l.secure.Addr().String())
	}
	return out
}
