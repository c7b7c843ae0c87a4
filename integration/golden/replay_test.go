package golden

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"kvnet/integration/harness"
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
	l := harness.Lab(t)
	rig := harness.Start(t, harness.Context(t, time.Minute), l.Dir, harness.Options{FullAuditInterval: fullAudit})
	return &replay{
		Scenario: s, t: t,
		switches: &switches{lab: l, relay: rig.Relay, bridges: map[model.DPID]bridge{}, apart: map[model.DPID]bool{}},
		wanted:   newWanted(rig.Server),
	}
}

func (r *replay) run(ctx context.Context) {
	for i, step := range r.Steps {
		number, mark := i+1, r.relay.Mark()
		if err := r.perform(ctx, step, r.refusal(number)); err != nil {
			r.t.Fatalf("step %d %s: %v", number, step.Op, err)
		}
		// A node is COMPLETE by itself, earlier than the recorded one.
		if step.Op == "createNode" || step.Op == "addDevice" || r.uncompared(number) {
			continue
		}
		want, err := r.apply(number)
		if err == nil {
			want, err = r.rewrite(want)
		}
		if err != nil {
			r.t.Fatalf("step %d %s: %v", number, step.Op, err)
		}
		if err := r.await(ctx, number, want); err != nil {
			// Go on: the later steps say whether it is this step's fault only.
			r.t.Errorf("step %d %s (%s):%v\nsent since: %+v", number, step.Op, step.Note, err, r.relay.Count(mark, "", relay.ToSwitch))
		}
	}
}

// perform does what a step says. A REST write is answered with status, or a
// success if that is 0.
func (r *replay) perform(ctx context.Context, step Step, status int) error {
	done, err := r.do(ctx, step, status)
	if step.Op == "removeNode" && err == nil {
		r.leave(step.Hostname)
	}
	if done || err != nil {
		return err
	}
	switch step.Op {
	case "batch":
		for _, s := range step.Steps {
			if err := r.perform(ctx, s, status); err != nil {
				return err
			}
		}
		return nil
	case "addDevice":
		id, err := model.ParseDPID(step.ID)
		if err != nil {
			return err
		}
		return r.add(ctx, id, step.Ports)
	case "deviceUp":
		id, err := model.ParseDPID(step.ID)
		if err == nil {
			err = r.cut(ctx, id, !step.Up)
		}
		if err != nil {
			return err
		}
		for name, node := range r.nodes {
			if text(node, "integrationBridge") == step.ID {
				r.awaitNode(ctx, name, map[bool]string{true: "COMPLETE", false: "INCOMPLETE"}[step.Up])
			}
		}
		return nil
	case "nodeState":
		if step.State == "INCOMPLETE" {
			id, err := model.ParseDPID(text(r.nodes[step.Hostname], "integrationBridge"))
			if err == nil {
				err = r.cut(ctx, id, true)
			}
			if err != nil {
				return err
			}
		}
		r.awaitNode(ctx, step.Hostname, step.State)
		return nil
	}
	return fmt.Errorf("an operation that is not replayed: %s", step.Op)
}

// leave says that the bridges of a deleted node don't count any more.
func (r *replay) leave(hostname string) {
	for _, step := range r.Steps {
		if text(step.Node, "hostname") != hostname {
			continue
		}
		for _, key := range []string{"integrationBridge", "tunnelBridge"} {
			if id, err := model.ParseDPID(text(step.Node, key)); err == nil {
				r.apart[id] = true
			}
		}
	}
}

func (r *replay) awaitNode(ctx context.Context, hostname, want string) {
	harness.Eventually(r.t, settle, hostname+" "+want, func() error {
		state, err := r.server.NodeState(ctx, hostname)
		if err == nil && state != want {
			err = fmt.Errorf("it is %s", state)
		}
		return err
	})
}

// await waits until the switches hold what is wanted and stay so for a while.
func (r *replay) await(ctx context.Context, step int, want State) error {
	deadline := time.Now().Add(settle)
	var since time.Time
	for {
		got, err := r.state(ctx)
		if err != nil {
			return err
		}
		err = r.compare(step, want, got)
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
