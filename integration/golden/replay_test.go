package golden

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"kvnet/integration/harness"
	"kvnet/integration/lab"
	"kvnet/integration/relay"
	"kvnet/model"
)

const (
	// settle is how long the switches may take to hold what a step asks for.
	settle = 5 * time.Second
	// steady is how long they must go on holding it.
	steady = 60 * time.Millisecond
	// fullAudit is the interval of the full recompute, which must find nothing
	// different (harness.RecomputeMetric).
	fullAudit = 2 * time.Second
)

func TestSwitchesHoldWhatONOSHeld(t *testing.T) {
	harness.NeedRoot(t)
	folders, err := filepath.Glob("testdata/scenarios/*")
	if err != nil || len(folders) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, folder := range folders {
		t.Run(filepath.Base(folder), func(t *testing.T) {
			t.Parallel()
			s, err := Load(folder)
			if err != nil {
				t.Fatal(err)
			}
			newReplay(t, s).run(harness.Context(t, 5*time.Minute))
		})
	}
}

// replay is one scenario on its way.
type replay struct {
	*Scenario
	t *testing.T
	*switches
	*wanted
}

func newReplay(t *testing.T, s *Scenario) *replay {
	l, err := lab.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	rig := harness.Start(t, harness.Context(t, time.Minute), l.Dir, harness.Options{FullAuditInterval: fullAudit})
	return &replay{
		Scenario: s, t: t,
		switches: &switches{lab: l, relay: rig.Relay, bridges: map[model.DPID]bridge{}},
		wanted:   &wanted{server: rig.Server, networks: map[string]map[string]any{}, routers: map[string]map[string]any{}},
	}
}

func (r *replay) run(ctx context.Context) {
	for i, step := range r.Steps {
		number, mark := i+1, r.relay.Mark()
		if err := r.perform(ctx, step); err != nil {
			r.t.Fatalf("step %d %s: %v", number, step.Op, err)
		}
		// A node is COMPLETE by itself, earlier than the recorded one.
		if step.Op == "createNode" || step.Op == "addDevice" {
			continue
		}
		want, err := r.apply(number)
		if err == nil {
			want, err = r.internalDrops(want)
		}
		if err != nil {
			r.t.Fatalf("step %d %s: %v", number, step.Op, err)
		}
		if err := r.await(ctx, want); err != nil {
			// Go on: the later steps say whether it is this step's fault only.
			r.t.Errorf("step %d %s (%s):%v\nsent since: %+v", number, step.Op, step.Note, err, r.relay.Count(mark, "", relay.ToSwitch))
		}
	}
}

// perform does what a step says.
func (r *replay) perform(ctx context.Context, step Step) error {
	done, err := r.do(ctx, step)
	if done || err != nil {
		return err
	}
	switch step.Op {
	case "addDevice":
		id, err := model.ParseDPID(step.ID)
		if err != nil {
			return err
		}
		return r.add(ctx, id, step.Ports)
	case "nodeState":
		if step.State != "COMPLETE" {
			return fmt.Errorf("state %s is not replayed", step.State)
		}
		harness.Eventually(r.t, settle, step.Hostname+" COMPLETE", func() error {
			state, err := r.server.NodeState(ctx, step.Hostname)
			if err == nil && state != step.State {
				err = fmt.Errorf("it is %s", state)
			}
			return err
		})
		return nil
	}
	return fmt.Errorf("an operation that is not replayed: %s", step.Op)
}

// await waits until the switches hold what is wanted and stay so for a while.
func (r *replay) await(ctx context.Context, want State) error {
	deadline := time.Now().Add(settle)
	var since time.Time
	for {
		got, err := r.state(ctx)
		if err != nil {
			return err
		}
		err = r.compare(want, got)
		switch {
		case err != nil && time.Now().After(deadline):
			return err
		case err != nil:
			since = time.Time{}
		case since.IsZero():
			since = time.Now()
		case time.Since(since) > steady:
			return nil
		}
		time.Sleep(20 * time.Millisecond)
	}
}
