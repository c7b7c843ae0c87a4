package probe

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"golang.org/x/sys/unix"

	"kvnet/integration/netns"
)

// Frame is a captured Ethernet frame.
type Frame struct {
	Time time.Time
	Data []byte
}

// Packet decodes the frame.
func (f Frame) Packet() gopacket.Packet {
	return gopacket.NewPacket(f.Data, layers.LayerTypeEthernet, gopacket.Default)
}

// String describes the frame with the time of its arrival.
func (f Frame) String() string {
	return f.Time.Format("15:04:05.000000") + " " + f.Packet().String()
}

// Capture collects the frames that an interface receives (not those that it
// sends).
type Capture struct {
	socket *socket
	done   chan struct{}

	mu      sync.Mutex
	frames  []Frame
	more    chan struct{} // closed and replaced when a frame comes
	stopped bool
	err     error
}

// StartCapture begins to collect at iface in ns, until Stop.
func StartCapture(ns *netns.NS, iface string) (*Capture, error) {
	s, err := openSocket(ns, iface)
	if err != nil {
		return nil, fmt.Errorf("capture at %s in %s: %w", iface, ns.Name, err)
	}
	c := &Capture{socket: s, done: make(chan struct{}), more: make(chan struct{})}
	go c.run()
	return c, nil
}

func (c *Capture) run() {
	defer close(c.done)
	buffer := make([]byte, 1<<16)
	for {
		n, outgoing, err := c.socket.read(buffer)
		if err == nil && outgoing {
			continue
		}
		c.mu.Lock()
		if err != nil {
			if !c.stopped {
				c.err = err
			}
			c.mu.Unlock()
			return
		}
		c.frames = append(c.frames, Frame{time.Now(), append([]byte(nil), buffer[:n]...)})
		close(c.more)
		c.more = make(chan struct{})
		c.mu.Unlock()
	}
}

// Stop ends the capture and returns all frames.
func (c *Capture) Stop() ([]Frame, error) {
	c.mu.Lock()
	c.stopped = true
	c.mu.Unlock()
	_ = c.socket.file.Close()
	<-c.done
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.frames, c.err
}

// Frames returns what has come so far.
func (c *Capture) Frames() []Frame {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]Frame(nil), c.frames...)
}

// Matching returns the frames that match accepts.
func (c *Capture) Matching(match func(gopacket.Packet) bool) []Frame {
	var out []Frame
	for _, f := range c.Frames() {
		if match(f.Packet()) {
			out = append(out, f)
		}
	}
	return out
}

// Wait waits until n frames match.
func (c *Capture) Wait(ctx context.Context, n int, match func(gopacket.Packet) bool) ([]Frame, error) {
	for {
		c.mu.Lock()
		more := c.more
		c.mu.Unlock()
		found := c.Matching(match)
		if len(found) >= n {
			return found, nil
		}
		select {
		case <-more:
		case <-ctx.Done():
			return found, fmt.Errorf("wait for %d packets, %d came: %w", n, len(found), ctx.Err())
		}
	}
}

// SendFrame sends one Ethernet frame from iface.
func SendFrame(ns *netns.NS, iface string, frame []byte) error {
	s, err := openSocket(ns, iface)
	if err != nil {
		return fmt.Errorf("send from %s in %s: %w", iface, ns.Name, err)
	}
	defer func() { _ = s.file.Close() }()
	if _, err := s.file.Write(frame); err != nil {
		return fmt.Errorf("send from %s in %s: %w", iface, ns.Name, err)
	}
	return nil
}

// socket is a packet socket that is bound to an interface (packet(7)).
type socket struct{ file *os.File }

func openSocket(ns *netns.NS, iface string) (*socket, error) {
	var s *socket
	err := ns.Do(func() error {
		i, err := net.InterfaceByName(iface)
		if err != nil {
			return err
		}
		protocol := networkOrder(unix.ETH_P_ALL)
		fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, int(protocol))
		if err != nil {
			return fmt.Errorf("open packet socket: %w", err)
		}
		if err := unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: protocol, Ifindex: i.Index}); err != nil {
			_ = unix.Close(fd)
			return fmt.Errorf("bind packet socket: %w", err)
		}
		s = &socket{os.NewFile(uintptr(fd), "packet socket of "+iface)}
		return nil
	})
	return s, err
}

// read returns the length of the next frame and whether this machine has sent it.
func (s *socket) read(buffer []byte) (n int, outgoing bool, err error) {
	raw, err := s.file.SyscallConn()
	if err != nil {
		return 0, false, err
	}
	var from unix.Sockaddr
	var readErr error
	err = raw.Read(func(fd uintptr) bool {
		n, from, readErr = unix.Recvfrom(int(fd), buffer, 0)
		return !errors.Is(readErr, unix.EAGAIN)
	})
	if err != nil {
		return 0, false, err
	}
	if readErr != nil {
		return 0, false, readErr
	}
	link, ok := from.(*unix.SockaddrLinklayer)
	return n, ok && link.Pkttype == unix.PACKET_OUTGOING, nil
}

func networkOrder(v uint16) uint16 {
	var b [2]byte
	binary.BigEndian.PutUint16(b[:], v)
	return binary.NativeEndian.Uint16(b[:])
}
