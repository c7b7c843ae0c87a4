package probe

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"syscall"
	"time"

	"kvnet/integration/netns"
)

// Service answers on TCP or UDP in a namespace and remembers who asked.
type Service struct {
	Address netip.AddrPort
	close   func() error
	done    sync.WaitGroup

	mu     sync.Mutex
	peers  []netip.AddrPort
	conns  map[net.Conn]bool // open ones
	closed bool
}

// ServeTCP starts a TCP service at address that tells each client the address it
// is seen with, then echoes.
func ServeTCP(ns *netns.NS, address netip.AddrPort) (*Service, error) {
	var ln net.Listener
	if err := ns.Do(func() (err error) {
		ln, err = net.Listen("tcp4", address.String())
		return err
	}); err != nil {
		return nil, fmt.Errorf("serve TCP in %s: %w", ns.Name, err)
	}
	s := &Service{Address: address, close: ln.Close}
	s.done.Go(func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			s.note(conn.RemoteAddr())
			s.done.Go(func() {
				defer s.hold(conn)()
				// A client whose end nobody tells of must not stay for ever.
				_ = conn.SetDeadline(time.Now().Add(10 * time.Minute))
				if _, err := fmt.Fprintf(conn, "%s\n", conn.RemoteAddr()); err == nil {
					_, _ = io.Copy(conn, conn)
				}
			})
		}
	})
	return s, nil
}

// ServeUDP starts a UDP echo service at address.
func ServeUDP(ns *netns.NS, address netip.AddrPort) (*Service, error) {
	conn, err := listenUDP(ns, address)
	if err != nil {
		return nil, fmt.Errorf("serve UDP in %s: %w", ns.Name, err)
	}
	s := &Service{Address: address, close: conn.Close}
	s.done.Go(func() {
		buffer := make([]byte, 2048)
		for {
			n, from, err := conn.ReadFrom(buffer)
			if err != nil {
				return
			}
			s.note(from)
			_, _ = conn.WriteTo(buffer[:n], from)
		}
	})
	return s, nil
}

// hold keeps conn among the open ones until it is released.
func (s *Service) hold(conn net.Conn) (release func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conns == nil {
		s.conns = map[net.Conn]bool{}
	}
	s.conns[conn] = true
	if s.closed {
		_ = conn.Close()
	}
	return func() {
		_ = conn.Close()
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.conns, conn)
	}
}

// Close ends the service with the connections that are still open.
func (s *Service) Close() error {
	err := s.close()
	s.mu.Lock()
	s.closed = true
	for conn := range s.conns {
		_ = conn.Close()
	}
	s.mu.Unlock()
	s.done.Wait()
	return err
}

// Peers returns the addresses that clients were seen with, each as often as it
// asked.
func (s *Service) Peers() []netip.AddrPort {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]netip.AddrPort(nil), s.peers...)
}

func (s *Service) note(a net.Addr) {
	if p, err := netip.ParseAddrPort(a.String()); err == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.peers = append(s.peers, p)
	}
}

// AskTCP connects from ns, from local port localPort if it is not 0, and returns
// the address that the service has seen.
func AskTCP(ctx context.Context, ns *netns.NS, localPort uint16, service netip.AddrPort) (netip.AddrPort, error) {
	dialer := net.Dialer{Control: reuseAddress}
	if localPort != 0 {
		dialer.LocalAddr = &net.TCPAddr{Port: int(localPort)}
	}
	conn, err := dialIn(ctx, ns, &dialer, "tcp4", service)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("ask TCP service %s from %s: %w", service, ns.Name, err)
	}
	defer func() { _ = conn.Close() }()
	if deadline, ok := ctx.Deadline(); ok {
		_ = conn.SetDeadline(deadline)
	}
	line := make([]byte, 64)
	n, err := conn.Read(line)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("read from TCP service %s: %w", service, err)
	}
	return netip.ParseAddrPort(strings.TrimSpace(string(line[:n])))
}

// AskUDP sends one datagram from ns and waits for its echo. It asks again each
// 200 ms until ctx ends, as datagrams may be lost while the way is made.
func AskUDP(ctx context.Context, ns *netns.NS, localPort uint16, service netip.AddrPort) error {
	dialer := net.Dialer{Control: reuseAddress}
	if localPort != 0 {
		dialer.LocalAddr = &net.UDPAddr{Port: int(localPort)}
	}
	return askUDP(ctx, ns, &dialer, service)
}

// StartUDP asks a UDP echo service from ns once each pulse, until Stop.
func StartUDP(ns *netns.NS, service netip.AddrPort, pulse time.Duration) (*Stream, error) {
	conn, err := dialIn(context.Background(), ns, &net.Dialer{}, "udp4", service)
	if err != nil {
		return nil, fmt.Errorf("ask UDP service %s from %s: %w", service, ns.Name, err)
	}
	buffer := make([]byte, 64)
	return newStream(fmt.Sprintf("UDP to %s from %s", service, ns.Name), pulse,
		func(sequence int) error {
			_, err := conn.Write(binary.BigEndian.AppendUint64(nil, uint64(sequence)))
			return err
		},
		func() (int, error) {
			for {
				n, err := conn.Read(buffer)
				if errors.Is(err, syscall.ECONNREFUSED) {
					continue
				}
				if err != nil {
					return 0, err
				}
				if n == 8 {
					return int(binary.BigEndian.Uint64(buffer)), nil
				}
			}
		}, conn.Close), nil
}

// dialIn connects from ns. The address is a literal, so the socket is made by the
// calling goroutine, which is on a thread in ns.
func dialIn(ctx context.Context, ns *netns.NS, d *net.Dialer, network string, to netip.AddrPort) (net.Conn, error) {
	var conn net.Conn
	err := ns.Do(func() (err error) {
		conn, err = d.DialContext(ctx, network, to.String())
		return err
	})
	return conn, err
}

func listenUDP(ns *netns.NS, address netip.AddrPort) (net.PacketConn, error) {
	var conn net.PacketConn
	err := ns.Do(func() (err error) {
		conn, err = net.ListenPacket("udp4", address.String())
		return err
	})
	return conn, err
}

// reuseAddress lets a client use the same local port for one connection after
// the other.
func reuseAddress(_, _ string, c syscall.RawConn) error {
	var failed error
	if err := c.Control(func(fd uintptr) {
		failed = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1)
	}); err != nil {
		return err
	}
	return failed
}
