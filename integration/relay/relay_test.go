package relay_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"go.uber.org/goleak"

	"kvnet/integration/relay"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// message builds an OpenFlow 1.3 message.
func message(t relay.Type, body ...byte) []byte {
	b := []byte{4, byte(t), 0, 0, 0, 0, 0, 1}
	b = append(b, body...)
	binary.BigEndian.PutUint16(b[2:], uint16(len(b)))
	return b
}

// bundled wraps a message into a bundle-add.
func bundled(inner []byte) []byte {
	body := binary.BigEndian.AppendUint32(nil, 0x4f4e4600)
	body = binary.BigEndian.AppendUint32(body, 2301)
	body = binary.BigEndian.AppendUint32(body, 7) // bundle id
	body = append(body, 0, 0, 0, 1)               // pad, flags
	return message(relay.Experimenter, append(body, inner...)...)
}

// fakeServer is the server's end: it hands out its connections.
type fakeServer struct {
	ln    net.Listener
	conns chan net.Conn
}

func newFakeServer(t *testing.T) *fakeServer {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &fakeServer{ln, make(chan net.Conn, 16)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			s.conns <- c
		}
	}()
	t.Cleanup(func() { _ = ln.Close(); <-done })
	return s
}

func (s *fakeServer) next(t *testing.T) net.Conn {
	t.Helper()
	select {
	case c := <-s.conns:
		t.Cleanup(func() { _ = c.Close() })
		return c
	case <-time.After(5 * time.Second):
		t.Fatal("the server got no connection")
		return nil
	}
}

func start(t *testing.T, names ...string) (*relay.Relay, *fakeServer, map[string]string) {
	t.Helper()
	s := newFakeServer(t)
	r := relay.New(s.ln.Addr().String())
	t.Cleanup(r.Close)
	addresses := map[string]string{}
	for _, n := range names {
		a, err := r.Listen(n, "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		addresses[n] = a.String()
	}
	return r, s, addresses
}

func dial(t *testing.T, address string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func write(t *testing.T, c net.Conn, b []byte) {
	t.Helper()
	if _, err := c.Write(b); err != nil {
		t.Fatal(err)
	}
}

func expect(t *testing.T, c net.Conn, want []byte) {
	t.Helper()
	_ = c.SetReadDeadline(time.Now().Add(5 * time.Second))
	got := make([]byte, len(want))
	if _, err := io.ReadFull(c, got); err != nil || !bytes.Equal(got, want) {
		t.Fatalf("got %x, %v, want %x", got, err, want)
	}
}

func expectClosed(t *testing.T, c net.Conn) {
	t.Helper()
	_ = c.SetReadDeadline(time.Now().Add(5 * time.Second))
	if b, err := io.ReadAll(c); err != nil && isTimeout(err) {
		t.Fatalf("still open after %x", b)
	}
}

func expectSilence(t *testing.T, c net.Conn) {
	t.Helper()
	_ = c.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
	var b [1]byte
	if n, err := c.Read(b[:]); n > 0 || !isTimeout(err) {
		t.Fatalf("got %d bytes, %v, want none", n, err)
	}
}

// expectWaiting waits until n connections of switch "a" are kept waiting.
func expectWaiting(t *testing.T, r *relay.Relay, n int) {
	t.Helper()
	deadline := time.Now().Add(5 * time.Second)
	for r.Waiting("a") != n {
		if time.Now().After(deadline) {
			t.Fatalf("%d connections wait, want %d", r.Waiting("a"), n)
		}
		time.Sleep(time.Millisecond)
	}
}

func isTimeout(err error) bool {
	var e net.Error
	return errors.As(err, &e) && e.Timeout()
}

func TestForwardsBothWaysAndCounts(t *testing.T) {
	r, s, at := start(t, "gw1/br-int", "w1/br-int")
	sw := dial(t, at["gw1/br-int"])
	hello := message(relay.Hello)
	write(t, sw, hello)
	server := s.next(t)
	expect(t, server, hello)

	mark := r.Mark()
	all := [][]byte{
		message(relay.FlowMod, make([]byte, 48)...),
		bundled(message(relay.FlowMod, make([]byte, 40)...)),
		bundled(message(relay.GroupMod, make([]byte, 8)...)),
		bundled(message(relay.PacketOut, make([]byte, 16)...)),
		message(relay.PacketOut, make([]byte, 16)...),
		message(relay.EchoRequest),
	}
	stream := bytes.Join(all, nil)
	// Frames come as the network cuts them.
	for len(stream) > 0 {
		n := min(13, len(stream))
		write(t, server, stream[:n])
		stream = stream[n:]
	}
	expect(t, sw, bytes.Join(all, nil))
	write(t, sw, message(relay.FlowMod)) // a switch sends none; it must not count as a write
	expect(t, server, message(relay.FlowMod))

	want := relay.Count{FlowMods: 2, GroupMods: 1, PacketOuts: 2, BundleAdds: 3, All: 6}
	if got := r.Count(mark, "gw1/br-int", relay.ToSwitch); got != want {
		t.Errorf("counted %+v, want %+v", got, want)
	}
	if got := r.Count(mark, "w1/br-int", relay.ToSwitch); got != (relay.Count{}) {
		t.Errorf("the other switch counted %+v", got)
	}
	if w := r.Writes(mark); len(w) != 3 {
		t.Errorf("%d writes, want 3:\n%s", len(w), relay.Describe(w))
	}
}

func TestHeldSwitchesComeInOneByOne(t *testing.T) {
	r, s, at := start(t, "a", "b")
	r.Hold()
	a, b := dial(t, at["a"]), dial(t, at["b"])
	helloA, helloB := message(relay.Hello, 'a'), message(relay.Hello, 'b')
	write(t, a, helloA)
	write(t, b, helloB)
	select {
	case <-s.conns:
		t.Fatal("a held switch reached the server")
	case <-time.After(100 * time.Millisecond):
	}
	r.Admit("b")
	expect(t, s.next(t), helloB)
	r.Admit("a")
	server := s.next(t)
	expect(t, server, helloA)
	write(t, server, helloA)
	expect(t, a, helloA)
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := r.WaitConnected(ctx); err != nil {
		t.Error(err)
	}
}

func TestHoldCutsWhatIsConnected(t *testing.T) {
	r, s, at := start(t, "a")
	a := dial(t, at["a"])
	server := s.next(t)
	r.Hold("a")
	expectClosed(t, a)
	expectClosed(t, server)
}

func TestSwitchThatGivesUpWhileHeldIsForgotten(t *testing.T) {
	r, s, at := start(t, "a")
	r.Hold("a")
	first := dial(t, at["a"])
	write(t, first, message(relay.Hello, 1))
	expectWaiting(t, r, 1)
	_ = first.Close()
	expectWaiting(t, r, 0)
	second := dial(t, at["a"])
	write(t, second, message(relay.Hello, 2))
	expectWaiting(t, r, 1)
	r.Admit("a")
	expect(t, s.next(t), message(relay.Hello, 2))
}

func TestFrozenConnectionStaysOpenAndLosesNothing(t *testing.T) {
	r, s, at := start(t, "a")
	a := dial(t, at["a"])
	server := s.next(t)
	r.Freeze("a")
	write(t, a, message(relay.EchoRequest, 1))
	write(t, server, message(relay.EchoRequest, 2))
	expectSilence(t, server)
	expectSilence(t, a)
	r.Thaw("a")
	expect(t, server, message(relay.EchoRequest, 1))
	expect(t, a, message(relay.EchoRequest, 2))
}

func TestCutSwitchMayComeBack(t *testing.T) {
	r, s, at := start(t, "a")
	a := dial(t, at["a"])
	_ = s.next(t)
	r.Cut("a")
	expectClosed(t, a)
	again := dial(t, at["a"])
	write(t, again, message(relay.Hello))
	expect(t, s.next(t), message(relay.Hello))
}

func TestGarbageGoesThroughUnrecorded(t *testing.T) {
	r, s, at := start(t, "a")
	a := dial(t, at["a"])
	garbage := []byte("\x04\x00\x00\x03GET / HTTP/1.0\r\n\r\n")
	write(t, a, garbage)
	expect(t, s.next(t), garbage)
	if c := r.Count(0, "", relay.ToServer); c.All != 0 {
		t.Errorf("recorded %+v of garbage", c)
	}
}

func TestSwitchSeesThatTheServerIsGone(t *testing.T) {
	_, s, at := start(t, "a")
	_ = s.ln.Close()
	expectClosed(t, dial(t, at["a"]))
}

// A connection can be cut at a message, which comes out no more, and is recorded.
// The next connection goes on as usual.
func TestCutWhen(t *testing.T) {
	r, s, at := start(t, "a")
	first, second := message(relay.FlowMod, 1), message(relay.FlowMod, 2)
	r.CutWhen("a", func(f relay.Frame) bool { return bytes.Equal(f.Bytes, second) })
	sw := dial(t, at["a"])
	srv := s.next(t)
	write(t, srv, append(append([]byte(nil), first...), second...))
	expect(t, sw, first)
	expectClosed(t, sw)
	if n := r.Count(0, "a", relay.ToSwitch).FlowMods; n != 2 {
		t.Errorf("%d messages are recorded, want 2", n)
	}
	sw = dial(t, at["a"])
	write(t, s.next(t), second)
	expect(t, sw, second)
}

func TestFreezeWhen(t *testing.T) {
	r, s, at := start(t, "a")
	first, second := message(relay.FlowMod, 1), message(relay.FlowMod, 2)
	frozen := make(chan struct{})
	r.FreezeWhen("a", func(f relay.Frame) bool {
		if !bytes.Equal(f.Bytes, second) {
			return false
		}
		close(frozen)
		return true
	})
	sw := dial(t, at["a"])
	write(t, s.next(t), append(append([]byte(nil), first...), second...))
	expect(t, sw, first)
	<-frozen
	expectSilence(t, sw)
	if n := r.Count(0, "a", relay.ToSwitch).FlowMods; n != 1 {
		t.Errorf("%d messages are recorded while the second is kept, want 1", n)
	}
	r.Thaw("a")
	expect(t, sw, second)
	if n := r.Count(0, "a", relay.ToSwitch).FlowMods; n != 2 {
		t.Errorf("%d messages are recorded, want 2", n)
	}
}
