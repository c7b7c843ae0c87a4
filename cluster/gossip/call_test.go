package gossip

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func pair(w *world) (n1, n2 *server) {
	n1, n2 = w.start(1), w.start(2, join(1))
	n1.sees("n1 n2")
	n2.sees("n1 n2")
	return n1, n2
}

func TestCall(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n1, n2 := pair(w)
		n2.Handle("echo", func(_ context.Context, from Member, b []byte) ([]byte, error) {
			return append([]byte(from.Name+":"), b...), nil
		})
		n2.Handle("fail", func(context.Context, Member, []byte) ([]byte, error) { return nil, errors.New("no luck") })
		n2.Handle("big", func(context.Context, Member, []byte) ([]byte, error) { return make([]byte, MaxPayload+1), nil })
		n2.Handle("slow", func(ctx context.Context, _ Member, _ []byte) ([]byte, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		})
		ctx := t.Context()
		if b, err := n1.Call(ctx, "n2", "echo", []byte("x")); err != nil || string(b) != "n1:x" {
			t.Errorf("%q, %v", b, err)
		}
		large := bytes.Repeat([]byte("y"), MaxPayload-3)
		if b, err := n1.Call(ctx, "n2", "echo", large); err != nil || !bytes.Equal(b[3:], large) {
			t.Errorf("%d bytes, %v", len(b), err)
		}
		var ce *CallError
		if _, err := n1.Call(ctx, "n2", "fail", nil); !errors.As(err, &ce) || ce.Text != "no luck" {
			t.Error(err)
		}
		for kind, says := range map[string]string{"nothing": "does not answer", "big": "can't be sent"} {
			if _, err := n1.Call(ctx, "n2", kind, nil); !errors.As(err, &ce) || !strings.Contains(err.Error(), says) {
				t.Errorf("%s: %v", kind, err)
			}
		}
		if _, err := n1.Call(ctx, "n2", "echo", make([]byte, MaxPayload+1)); err == nil || errors.As(err, &ce) {
			t.Error(err)
		}
		if _, err := n1.Call(ctx, "n9", "echo", nil); !errors.Is(err, ErrNoMember) {
			t.Error(err)
		}
		began := time.Now()
		if _, err := n1.Call(ctx, "n2", "slow", nil); !errors.Is(err, context.DeadlineExceeded) && !errors.As(err, &ce) || time.Since(began) > callTime+time.Second {
			t.Error(err, time.Since(began))
		}
		short, cancel := context.WithTimeout(ctx, 0)
		defer cancel()
		if _, err := n1.Call(short, "n2", "echo", nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	})
}

// TestCallsBounded: calls and handlers have a bound, and what was over it works
// afterwards.
func TestCallsBounded(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n1, n2 := pair(w)
		var mu sync.Mutex
		running, most := 0, 0
		n2.Handle("slow", func(ctx context.Context, _ Member, _ []byte) ([]byte, error) {
			mu.Lock()
			running++
			most = max(most, running)
			mu.Unlock()
			select {
			case <-ctx.Done():
			case <-time.After(time.Second):
			}
			mu.Lock()
			running--
			mu.Unlock()
			return nil, nil
		})
		var wg sync.WaitGroup
		var busy, done int
		for range maxCalls + 10 {
			wg.Go(func() {
				_, err := n1.Call(t.Context(), "n2", "slow", nil)
				mu.Lock()
				defer mu.Unlock()
				switch {
				case errors.Is(err, ErrBusy):
					busy++
				case err == nil:
					done++
				}
			})
		}
		wg.Wait()
		mu.Lock()
		peak := most
		mu.Unlock()
		if busy != 10 || peak != workers || done == 0 {
			t.Errorf("%d were busy, %d done, %d at a time", busy, done, peak)
		}
		time.Sleep(time.Minute) // virtual
		if _, err := n1.Call(t.Context(), "n2", "slow", nil); err != nil {
			t.Error(err)
		}
		n1.calls.mu.Lock()
		left := len(n1.calls.waiting)
		n1.calls.mu.Unlock()
		if left > 1 {
			t.Errorf("%d calls are left", left)
		}
	})
}

func TestCallAndClose(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n1, n2 := pair(w)
		entered := make(chan struct{}, 2)
		n2.Handle("wait", func(ctx context.Context, _ Member, _ []byte) ([]byte, error) {
			entered <- struct{}{}
			<-ctx.Done()
			return nil, ctx.Err()
		})
		errs := make(chan error, 2)
		go func() {
			_, err := n1.Call(t.Context(), "n2", "wait", nil)
			errs <- err
		}()
		<-entered
		n1.close()
		if err := <-errs; !errors.Is(err, ErrClosed) {
			t.Error(err)
		}
		if _, err := n1.Call(t.Context(), "n2", "wait", nil); err == nil {
			t.Error("a closed gossip calls")
		}
		n2.close() // with a handler that runs
	})
}

func TestCallOfEarlierLife(t *testing.T) {
	v := newView("n1")
	var sent []frame
	c := newCalls(identity{name: "n1", instance: 2}, v, func(_ Member, b []byte) error {
		f, err := decodeFrame(b)
		sent = append(sent, f)
		return err
	})
	v.listed("n2", "10.0.0.2:1", Meta{Instance: 5}, true)
	c.serve(t.Context(), frame{kind: frameRequest, id: 1, from: "n2", to: 1, timeout: time.Second}) // for an earlier life
	c.serve(t.Context(), frame{kind: frameRequest, id: 2, from: "n3", to: 2, timeout: time.Second}) // from a stranger
	if len(sent) != 0 {
		t.Errorf("answered %v", sent)
	}
	c.serve(t.Context(), frame{kind: frameRequest, id: 3, from: "n2", to: 2, instance: 5, timeout: time.Second})
	if len(sent) != 1 || sent[0].kind != frameError || sent[0].id != 3 || sent[0].to != 5 {
		t.Errorf("answered %v", sent)
	}
	// Answers that nobody waits for.
	o := &outstanding{to: "n2", answer: make(chan frame, 1)}
	c.waiting[7] = o
	c.received(frame{kind: frameAnswer, id: 7, from: "n3", to: 2})
	c.received(frame{kind: frameAnswer, id: 7, from: "n2", to: 1})
	c.received(frame{kind: frameAnswer, id: 8, from: "n2", to: 2})
	if len(o.answer) != 0 {
		t.Error("a wrong answer was taken")
	}
	c.received(frame{kind: frameAnswer, id: 7, from: "n2", to: 2})
	c.received(frame{kind: frameAnswer, id: 7, from: "n2", to: 2}) // twice
	if len(o.answer) != 1 {
		t.Error("the answer was not taken")
	}
}

// A request may be here before the news of the server that has sent it, or of its
// present life.
func TestRequestOvertakesItsSender(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, known := range []uint64{0, 7} { // an earlier life
			v := newView("n1")
			sent := make(chan Member, 1)
			c := newCalls(identity{name: "n1", instance: 1}, v, func(m Member, _ []byte) error {
				sent <- m
				return nil
			})
			c.handle("echo", func(context.Context, Member, []byte) ([]byte, error) { return nil, nil })
			if known != 0 {
				v.listed("n2", addr(9), Meta{Instance: known}, true)
			}
			ctx, stop := context.WithCancel(t.Context())
			var running sync.WaitGroup
			running.Go(func() { c.run(ctx) })
			c.received(frame{kind: frameRequest, id: 1, from: "n2", instance: 8, to: 1, method: "echo", timeout: time.Minute})
			synctest.Wait()
			v.listed("n2", addr(2), Meta{Instance: 8}, true)
			synctest.Wait()
			select {
			case m := <-sent:
				if m.Address != addr(2) {
					t.Errorf("the answer went to %s", m.Address)
				}
			default:
				t.Error("the request was not answered")
			}
			stop()
			running.Wait()
		}
	})
}
