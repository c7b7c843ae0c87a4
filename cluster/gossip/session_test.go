package gossip

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// shake lets two servers meet and returns what each thinks.
func shake(a, b identity, want string) (instance uint64, dialErr error, name string, acceptErr error) {
	x, y := memPipe("a", "b")
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer y.Close()
		_, _ = io.ReadFull(y, make([]byte, 1))
		name, _, acceptErr = acceptHandshake(y, b)
	}()
	instance, dialErr = dialHandshake(x, a, want)
	if dialErr != nil {
		x.Close()
	}
	<-done
	return instance, dialErr, name, acceptErr
}

func TestHandshake(t *testing.T) {
	a := identity{name: "a", instance: 1, key: testKey}
	b := identity{name: "b", instance: 2, key: testKey}
	if i, err, name, err2 := shake(a, b, "b"); err != nil || err2 != nil || i != 2 || name != "a" {
		t.Error(i, err, name, err2)
	}
	other := identity{name: "b", instance: 2, key: make([]byte, keySize)}
	if _, err, _, err2 := shake(a, other, "b"); !errors.Is(err, errNoProof) || err2 == nil {
		t.Error("another key:", err, err2)
	}
	if _, err, _, err2 := shake(a, b, "c"); !errors.Is(err, errStranger) || err2 == nil {
		t.Error("another server:", err, err2)
	}
	if _, err, _, err2 := shake(a, identity{name: "a", instance: 9, key: testKey}, "a"); err == nil || !errors.Is(err2, errStranger) {
		t.Error("itself:", err, err2)
	}
	if _, err, _, err2 := shake(identity{name: "a"}, identity{name: "b", instance: 2}, "b"); err != nil || err2 != nil {
		t.Error("no key:", err, err2)
	}
}

// TestHandshakeForged plays a session back that was recorded, and sends the
// accepter's proof back to it.
func TestHandshakeForged(t *testing.T) {
	a := identity{name: "a", instance: 1, key: testKey}
	b := identity{name: "b", instance: 2, key: testKey}
	hello := a.hello()
	var first bytes.Buffer
	rw := struct {
		io.Reader
		io.Writer
	}{io.MultiReader(bytes.NewReader(hello), neverReader{}), &first}
	if _, _, err := acceptHandshake(rw, b); !errors.Is(err, errNoProof) {
		t.Error(err)
	}
	said := first.Bytes()
	theirs, proof := said[:len(said)-32], said[len(said)-32:]
	right := a.proof(dialLabel, hello, theirs)
	for name, p := range map[string][]byte{"recorded": right, "sent back": proof, "nothing": nil, "zeros": make([]byte, 32)} {
		in := io.MultiReader(bytes.NewReader(hello), bytes.NewReader(p))
		if _, _, err := acceptHandshake(struct {
			io.Reader
			io.Writer
		}{in, io.Discard}, b); !errors.Is(err, errNoProof) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

type neverReader struct{}

func (neverReader) Read([]byte) (int, error) { return 0, io.EOF }

// TestStrangers: connections that say nothing, or the wrong thing, hold nothing
// for long.
func TestStrangers(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n1, n2 := pair(w)
		n1.hasSessions(1)
		foe := w.net.listen("10.0.0.66:1")
		defer foe.kill()
		var open []net.Conn
		for range maxStrangers + 1 {
			c, err := foe.DialTimeout(addr(1), time.Second)
			if err != nil {
				t.Fatal(err)
			}
			open = append(open, c)
		}
		synctest.Wait()
		n1.says("have not said anything yet")
		forged, err := foe.DialTimeout(addr(2), time.Second)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = forged.Write(append([]byte{sessionMagic}, identity{name: "n1", instance: n1.Instance()}.hello()...))
		_, _ = forged.Write(make([]byte, 32))
		n2.says("has not proved that it knows the gossip key")
		// All are closed in the end.
		for _, c := range append(open, forged) {
			if _, err := io.Copy(io.Discard, c); err != nil {
				t.Error(err)
			}
		}
		n1.keeps("n1 n2", 10*time.Second)
		n2.keeps("n1 n2", time.Second)
		n1.hasSessions(1)
	})
}

// TestTheNextLifeIsDialledAtOnce: a server is dialled that has just ended, and comes
// back before it would be dialled again.
func TestTheNextLifeIsDialledAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dials := 0
		s := &sessions{
			id: identity{name: "n1", instance: 1}, view: newView("n1"), refused: func(*RefusedError) {}, lost: func(bool) {},
			dial: func(string, time.Duration) (net.Conn, error) {
				dials++
				return nil, errors.New("connection refused")
			},
			open: map[string]*session{}, dialing: map[string]uint64{},
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); s.run(ctx) }()
		for life := range 3 {
			s.view.listed("n2", addr(2), Meta{Instance: uint64(life + 1)}, true)
			synctest.Wait()
			if dials != life+1 {
				t.Errorf("life %d of the server: %d dials so far", life+1, dials)
			}
			s.view.listed("n2", addr(2), Meta{Instance: uint64(life + 1), REST: "127.0.0.1:8181"}, false)
			synctest.Wait()
			if dials != life+1 {
				t.Errorf("the same life is dialled again at once")
			}
		}
		cancel()
		<-done
	})
}

// TestAnEndIsLookedInto: what dials say while a process dies.
func TestAnEndIsLookedInto(t *testing.T) {
	reset, refused, timeout := error(syscall.ECONNRESET), error(syscall.ECONNREFUSED), error(syscall.ETIMEDOUT)
	for name, c := range map[string]struct {
		answers []error // nil: somebody listens, as after the last one
		dead    bool
	}{
		"nobody listens":                         {[]error{refused}, true},
		"the port is closed a moment later":      {[]error{nil, nil, refused}, true},
		"the process ends while it is dialled":   {[]error{reset, nil, reset, refused}, true},
		"the machine doesn't answer":             {[]error{timeout, refused}, false},
		"only the session has ended":             {nil, false},
		"the process is slow to close its ports": {[]error{nil, nil, nil, nil, nil, refused}, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v, dead := newView("n1"), false
				v.listed("n2", addr(2), Meta{Instance: 7}, true)
				s := &sessions{view: v, lost: func(is bool) { dead = is }, dial: func(string, time.Duration) (net.Conn, error) {
					if len(c.answers) > 0 {
						err := c.answers[0]
						c.answers = c.answers[1:]
						if err != nil {
							return nil, &net.OpError{Op: "dial", Net: "tcp", Err: err}
						}
					}
					a, b := memPipe("a", "b")
					b.Close()
					return a, nil
				}}
				s.check(t.Context(), "n2", 7)
				m, _ := v.get("n2")
				if dead != c.dead || (m.State == Failed) != c.dead {
					t.Errorf("the process counts as dead: %t, and is %v", dead, m.State)
				}
			})
		})
	}
}
