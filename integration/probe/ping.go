package probe

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"sync/atomic"
	"time"

	"kvnet/integration/netns"
)

// Types of ICMP (RFC 792).
const (
	icmpEchoReply   = 0
	icmpEchoRequest = 8
)

var pingID atomic.Uint32

// StartPing pings target from ns once each pulse, until Stop. It sends as many as
// 65536 questions.
func StartPing(ns *netns.NS, target netip.Addr, pulse time.Duration) (*Stream, error) {
	conn, err := openICMP(ns)
	if err != nil {
		return nil, err
	}
	id := uint16(pingID.Add(1))
	to := &net.IPAddr{IP: target.AsSlice()}
	buffer := make([]byte, 1500)
	return newStream(fmt.Sprintf("ping %s from %s", target, ns.Name), pulse,
		func(sequence int) error {
			_, err := conn.WriteTo(echoRequest(id, uint16(sequence)), to)
			return err
		},
		func() (int, error) {
			for {
				n, from, err := conn.ReadFrom(buffer)
				if err != nil {
					return 0, err
				}
				if sequence, ok := parseEchoReply(buffer[:n], id); ok && from.String() == target.String() {
					return int(sequence), nil
				}
			}
		}, conn.Close), nil
}

// Ping pings target until it answers or ctx ends.
func Ping(ctx context.Context, ns *netns.NS, target netip.Addr) error {
	s, err := StartPing(ns, target, 100*time.Millisecond)
	if err != nil {
		return err
	}
	defer s.abort()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for s.Answered() == 0 {
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w: %s", s.name, ctx.Err(), s.result())
		case <-tick.C:
		}
	}
	return nil
}

// abort ends the stream without waiting for answers.
func (s *Stream) abort() {
	close(s.stop)
	s.asking.Wait()
	_ = s.close()
	s.listening.Wait()
}

func openICMP(ns *netns.NS) (net.PacketConn, error) {
	var conn net.PacketConn
	err := ns.Do(func() (err error) {
		conn, err = net.ListenPacket("ip4:icmp", "0.0.0.0")
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("open ICMP socket in %s: %w", ns.Name, err)
	}
	return conn, nil
}

func echoRequest(id, sequence uint16) []byte {
	b := make([]byte, 8+16)
	b[0] = icmpEchoRequest
	binary.BigEndian.PutUint16(b[4:], id)
	binary.BigEndian.PutUint16(b[6:], sequence)
	binary.BigEndian.PutUint16(b[2:], checksum(b))
	return b
}

func parseEchoReply(b []byte, id uint16) (sequence uint16, ok bool) {
	if len(b) < 8 || b[0] != icmpEchoReply || binary.BigEndian.Uint16(b[4:]) != id {
		return 0, false
	}
	return binary.BigEndian.Uint16(b[6:]), true
}

// checksum is that of RFC 1071, for an even number of bytes.
func checksum(b []byte) uint16 {
	var sum uint32
	for i := 0; i+1 < len(b); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	for sum > 0xffff {
		sum = sum&0xffff + sum>>16
	}
	return ^uint16(sum)
}
