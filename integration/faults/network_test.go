package faults

import (
	"errors"
	"time"

	"kvnet/integration/cluster"
	"kvnet/integration/lab"
)

// cutOff applies a cut for a while: new work must be done meanwhile, and all must
// be well afterwards.
func (f *field) cutOff(cut func() error) error {
	if err := cut(); err != nil {
		return err
	}
	began := time.Now()
	if err := cluster.Await(f.ctx, soon, "new work during the fault", f.someWork); err != nil {
		return errors.Join(err, f.Heal(f.ctx))
	}
	f.note("work is done after %s", time.Since(began).Round(time.Millisecond))
	if err := rest(f, outage()-time.Since(began)); err != nil {
		return err
	}
	if err := cluster.Await(f.ctx, soon, "new work at the end of the fault", f.someWork); err != nil {
		return errors.Join(err, f.Heal(f.ctx))
	}
	f.note("%d changes of the leader", f.Terms(f.mark))
	if err := f.Heal(f.ctx); err != nil {
		return err
	}
	healed := time.Now()
	if err := f.WaitWrite(f.ctx, f.leader, soon); err != nil {
		return err
	}
	f.note("the leader of before takes writes %s after the heal", time.Since(healed).Round(10*time.Millisecond))
	// An attempt whose answer got lost may have left something.
	return cluster.Await(f.ctx, soon, "the end of the work", func() error { return f.undo(f.Serving()[0]) })
}

// someWork makes a balancer and deletes it by any server that takes the write. The
// fault is about the leader, so it is asked last.
func (f *field) someWork() error {
	var errs []error
	for _, m := range append(f.Followers(f.leader), f.leader) {
		err := f.work(m)
		if err == nil {
			err = f.undo(m)
		}
		if err == nil {
			return nil
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// The others don't hear the leader, but it hears them.
func leaderNotHeard(f *field) error {
	return f.cutOff(func() error {
		for _, m := range f.Followers(f.leader) {
			if err := f.CutOneWay(f.ctx, f.leader, m, cluster.Everything); err != nil {
				return err
			}
		}
		return nil
	})
}

// The leader doesn't hear the others, but they hear it.
func leaderDeaf(f *field) error {
	return f.cutOff(func() error {
		for _, m := range f.Followers(f.leader) {
			if err := f.CutOneWay(f.ctx, m, f.leader, cluster.Everything); err != nil {
				return err
			}
		}
		return nil
	})
}

// cutProtocol parts all servers from each other for one protocol. Without TCP the
// store has no quorum, so that no new work can be done; what is there stays.
func cutProtocol(p cluster.Protocol) func(*field) error {
	return func(f *field) error {
		cut := func() error {
			for i, a := range f.Members {
				for _, b := range f.Members[i+1:] {
					if err := f.Cut(f.ctx, a, b, p); err != nil {
						return err
					}
				}
			}
			return nil
		}
		if p == cluster.UDP {
			return f.cutOff(cut)
		}
		if err := cut(); err != nil {
			return err
		}
		if err := rest(f, outage()); err != nil {
			return err
		}
		return f.Heal(f.ctx)
	}
}

// All servers lose 30 % of what others send. TCP hardly works then, and neither does
// the store; but what it acknowledges has to stay.
func packetLoss(f *field) error {
	const prefix = "lossy"
	for _, m := range f.Members {
		if err := f.Lose(f.ctx, m, 30); err != nil {
			return err
		}
	}
	b := f.StartBurst(f.ctx, prefix)
	err := rest(f, 2*outage())
	accepted, failed := b.Stop()
	f.note("%d writes taken, %d not; %d changes of the leader", len(accepted), failed, f.Terms(f.mark))
	if err := errors.Join(err, f.Heal(f.ctx)); err != nil {
		return err
	}
	if _, err := f.WaitWrites(f.ctx, soon); err != nil {
		return err
	}
	for _, m := range f.Serving() {
		if err := cluster.Await(f.ctx, 5*time.Second, "all writes on "+m.Name, func() error { return f.Missing(f.ctx, m, accepted) }); err != nil {
			return err
		}
	}
	return f.Forget(f.ctx, f.Serving()[0], prefix)
}

// A switch that forwards nothing at the moment is frozen. The others must not wait
// for it.
func freezeSwitch(f *field) error {
	node := f.Node(lab.GatewayName(2))
	if err := node.PauseSwitch(); err != nil {
		return err
	}
	began := time.Now()
	err := f.someWork()
	f.note("work is done after %s", time.Since(began).Round(time.Millisecond))
	if err == nil {
		err = rest(f, time.Minute-time.Since(began))
	}
	return errors.Join(err, node.ResumeSwitch())
}

// No server reaches all switches: the gateway reaches only the leader, the worker
// only another. (A gateway that the leader doesn't reach counts as dead, and its
// routers move.)
func splitReach(f *field) error {
	ways := map[string]*cluster.Member{lab.Gateway: f.leader, lab.Worker(1): f.Followers(f.leader)[0]}
	for _, b := range f.Controlled {
		for _, m := range f.Members {
			if only, ok := ways[b.Node]; ok && only != m {
				m.Relay.Hold(b.Name())
			}
		}
	}
	err := rest(f, 2*outage())
	f.note("%d changes of the leader", f.Terms(f.mark))
	for _, m := range f.Members {
		m.Relay.Admit()
	}
	return err
}

// The leader loses some of the switches, and another server has them all: it gets
// the lead, and keeps it.
func leaderLosesSwitches(f *field) error {
	for _, b := range f.Controlled {
		if b.Node == lab.Worker(1) || b.Node == lab.GatewayName(2) {
			f.leader.Relay.Hold(b.Name())
		}
	}
	took, err := f.WaitMasters(f.ctx, f.mark, f.leader)
	if err == nil {
		f.note("MASTER of all after %s", took.Round(time.Millisecond))
		err = cluster.Await(f.ctx, soon, "new work without the leader of before", f.someWork)
	}
	f.leader.Relay.Admit()
	f.note("%d changes of the leader", f.Terms(f.mark))
	return err
}
