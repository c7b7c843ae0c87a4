package openflow_test

import (
	"context"
	"errors"
	"testing"

	"kvnet/southbound/flow"
	"kvnet/southbound/openflow"
	"kvnet/southbound/openflow/oftest"
)

// adds are messages that add n rules.
func adds(t testing.TB, n int) (msgs []openflow.Message) {
	for i := range n {
		msgs = append(msgs, add(t, uint16(i+1), output(1)))
	}
	return msgs
}

func TestStartedBundleIsInForceOnlyWhenItIsFinished(t *testing.T) { both(t, startedBundle) }

func startedBundle(t *testing.T, s *openflow.Session, holds func() []string) {
	msgs := adds(t, 1500)
	b := s.Start(2000)
	b.Send(msgs[:700])
	b.Send(msgs[:1400])
	if err := s.Barrier(until(t)); err != nil {
		t.Fatal(err)
	}
	if got := holds(); len(got) != 0 {
		t.Fatalf("%d rules are in force before the bundle is finished", len(got))
	}
	if err := s.Finish(until(t), b, msgs); err != nil {
		t.Fatal(err)
	}
	if got := holds(); len(got) != len(msgs) {
		t.Fatalf("%d rules are in force", len(got))
	}
}

func TestRefusalInTheStartedPartLeavesNothing(t *testing.T) { both(t, refusedStart) }

func refusedStart(t *testing.T, s *openflow.Session, holds func() []string) {
	for name, at := range map[string]int{"in the part that was sent before": 300, "in the rest": 1100} {
		t.Run(name, func(t *testing.T) {
			msgs := adds(t, 1200)
			msgs[at] = add(t, 9, flow.ToGroup{ID: 0x6b000bad})
			b := s.Start(1200)
			b.Send(msgs[:1000])
			var refused *openflow.BundleError
			if err := s.Finish(until(t), b, msgs); !errors.As(err, &refused) || refused.Refused[0].Index != at {
				t.Errorf("error %v", err)
			}
			if err := s.Barrier(until(t)); err != nil {
				t.Fatal(err)
			}
			if got := holds(); len(got) != 0 {
				t.Errorf("%d rules are in force", len(got))
			}
		})
	}
}

func TestStartedBundleThatIsGivenUpLeavesNothing(t *testing.T) { both(t, startGivenUp) }

func startGivenUp(t *testing.T, s *openflow.Session, holds func() []string) {
	msgs := adds(t, 1200)
	b := s.Start(1200)
	b.Send(msgs[:1000])
	ctx, cancel := context.WithCancel(until(t))
	cancel()
	if err := s.Finish(ctx, b, msgs); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	// Another bundle is not disturbed by what is left of the first.
	if err := s.Bundle(until(t), msgs[:2]); err != nil {
		t.Fatal(err)
	}
	if got := holds(); len(got) != 2 {
		t.Errorf("%d rules are in force", len(got))
	}
}

func TestStartedBundleThatIsDroppedLeavesNothing(t *testing.T) { both(t, dropped) }

func dropped(t *testing.T, s *openflow.Session, holds func() []string) {
	msgs := adds(t, 1200)
	s.Drop(s.Start(1200)) // of which nothing was sent
	b := s.Start(1200)
	b.Send(msgs[:1000])
	s.Drop(b)
	// Another bundle is not disturbed by what is left of the first.
	if err := s.Bundle(until(t), msgs[:2]); err != nil {
		t.Fatal(err)
	}
	if got := holds(); len(got) != 2 {
		t.Errorf("%d rules are in force", len(got))
	}
}

func TestBundleThatIsStartedBeforeTheOneBeforeIsFinished(t *testing.T) { both(t, overlapping) }

func overlapping(t *testing.T, s *openflow.Session, holds func() []string) {
	msgs := adds(t, 3000)
	first, second := s.Start(1500), s.Start(1500)
	first.Send(msgs[:1000])
	second.Send(msgs[1500:2500])
	if err := s.Finish(until(t), first, msgs[:1500]); err != nil {
		t.Fatal(err)
	}
	if got := holds(); len(got) != 1500 {
		t.Errorf("%d rules are in force with the first", len(got))
	}
	if err := s.Finish(until(t), second, msgs[1500:]); err != nil {
		t.Fatal(err)
	}
	if got := holds(); len(got) != 3000 {
		t.Errorf("%d rules are in force with both", len(got))
	}
}

func TestStartedBundleEndsWithItsConnection(t *testing.T) {
	sw := oftest.New(0x42, "p1")
	c := asMaster(start(t, nil))
	sw.Connect(t, c.addr)
	s := c.master(t, 0x42)
	msgs := adds(t, 1200)
	b := s.Start(1200)
	b.Send(msgs[:1000])
	sw.Disconnect()
	if err := s.Finish(until(t), b, msgs); !errors.Is(err, openflow.ErrClosed) {
		t.Errorf("error %v", err)
	}
	if n := len(sw.Rules()); n != 0 {
		t.Errorf("%d rules are in force", n)
	}
}

func TestWhatFindsNoRoomInTheQueueIsSentAtTheEnd(t *testing.T) {
	sw := oftest.New(0x42, "p1")
	c := asMaster(start(t, func(c *openflow.Config) { c.QueueLen = 1 }))
	sw.Connect(t, c.addr)
	s := c.master(t, 0x42)
	sw.Freeze() // so that nothing leaves
	msgs := adds(t, 30_000)
	b := s.Start(len(msgs))
	for n := 1000; n <= len(msgs); n += 1000 {
		b.Send(msgs[:n])
	}
	sw.Thaw()
	if err := s.Finish(until(t), b, msgs); err != nil {
		t.Fatal(err)
	}
	if n := len(sw.Rules()); n != len(msgs) {
		t.Errorf("%d rules are in force", n)
	}
}
