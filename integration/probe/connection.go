package probe

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"time"

	"kvnet/integration/netns"
)

// Connection is a TCP connection to a service of ServeTCP that stays open.
type Connection struct {
	conn net.Conn
	// Seen is the address with which the service has seen the client.
	Seen netip.AddrPort
}

// OpenTCP connects from ns to a service of ServeTCP.
func OpenTCP(ctx context.Context, ns *netns.NS, service netip.AddrPort) (*Connection, error) {
	conn, err := dialIn(ctx, ns, &net.Dialer{}, "tcp4", service)
	if err != nil {
		return nil, fmt.Errorf("connect to %s from %s: %w", service, ns.Name, err)
	}
	c := &Connection{conn: conn}
	if c.Seen, err = c.greeting(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("connect to %s from %s: %w", service, ns.Name, err), conn.Close())
	}
	return c, nil
}

func (c *Connection) greeting(ctx context.Context) (netip.AddrPort, error) {
	if deadline, ok := ctx.Deadline(); ok {
		_ = c.conn.SetDeadline(deadline)
	}
	line := make([]byte, 64)
	n, err := c.conn.Read(line)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("read the greeting: %w", err)
	}
	return netip.ParseAddrPort(strings.TrimSpace(string(line[:n])))
}

// Echo sends a text and reads it back, within limit.
func (c *Connection) Echo(text string, limit time.Duration) error {
	_ = c.conn.SetDeadline(time.Now().Add(limit))
	if _, err := io.WriteString(c.conn, text); err != nil {
		return fmt.Errorf("send to %s: %w", c.conn.RemoteAddr(), err)
	}
	back := make([]byte, len(text))
	if _, err := io.ReadFull(c.conn, back); err != nil {
		return fmt.Errorf("read from %s: %w", c.conn.RemoteAddr(), err)
	}
	if string(back) != text {
		return fmt.Errorf("%s answers %q, want %q", c.conn.RemoteAddr(), back, text)
	}
	return nil
}

// Close ends the connection.
func (c *Connection) Close() error { return c.conn.Close() }

// AskUDPFrom is AskUDP from one of several addresses of ns.
func AskUDPFrom(ctx context.Context, ns *netns.NS, local netip.Addr, service netip.AddrPort) error {
	return askUDP(ctx, ns, &net.Dialer{LocalAddr: net.UDPAddrFromAddrPort(netip.AddrPortFrom(local, 0))}, service)
}

// askUDP sends one datagram each 200 ms until an echo comes or ctx ends.
func askUDP(ctx context.Context, ns *netns.NS, dialer *net.Dialer, service netip.AddrPort) error {
	conn, err := dialIn(ctx, ns, dialer, "udp4", service)
	if err != nil {
		return fmt.Errorf("ask UDP service %s from %s: %w", service, ns.Name, err)
	}
	defer func() { _ = conn.Close() }()
	buffer := make([]byte, 64)
	for ctx.Err() == nil {
		if _, err := conn.Write([]byte("kvnet")); err != nil && !errors.Is(err, syscall.ECONNREFUSED) {
			return fmt.Errorf("ask UDP service %s: %w", service, err)
		}
		_ = conn.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
		if _, err := conn.Read(buffer); err == nil {
			return nil
		} else if !errors.Is(err, os.ErrDeadlineExceeded) && !errors.Is(err, syscall.ECONNREFUSED) {
			return fmt.Errorf("read from UDP service %s: %w", service, err)
		}
	}
	return fmt.Errorf("ask UDP service %s: no answer: %w", service, ctx.Err())
}
