package faults

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"kvnet/integration/cluster"
	"kvnet/integration/lab"
	"kvnet/integration/relay"
	"kvnet/integration/server"
)

func killDuringWrites(f *field) error {
	return f.keep(func() error {
		f.mark = f.Mark()
		if err := f.leader.Kill(); err != nil {
			return err
		}
		if _, err := f.newLeader(); err != nil {
			return err
		}
		return f.restart(f.leader)
	})
}

// What another server has acknowledged must reach the switches, though the leader
// dies before it does anything about it.
func killAfterWrite(f *field) error {
	by := f.Followers(f.leader)[0]
	if err := f.ask(by, http.MethodPost, server.NetworkingPath+"/loadbalancer", aside(), http.StatusCreated); err != nil {
		return err
	}
	f.mark = f.Mark()
	if err := f.leader.Kill(); err != nil {
		return err
	}
	next, err := f.newLeader()
	if err != nil {
		return err
	}
	if err := f.WaitTargets(f.ctx, true, cluster.VMs[2].IP); err != nil {
		return err
	}
	return errors.Join(f.undo(next), f.restart(f.leader))
}

// A leader that was paused must not write what it knew before.
func pauseLeader(f *field) error {
	if err := f.leader.Pause(); err != nil {
		return err
	}
	next, err := f.newLeader()
	if err != nil {
		return err
	}
	if err := rest(f, 30*time.Second-time.Since(f.mark.Time)); err != nil {
		return err
	}
	// What the old leader believes is no longer so when it goes on.
	if err := f.work(next); err != nil {
		return err
	}
	if err := f.leader.Resume(); err != nil {
		return err
	}
	if err := rest(f, 3*time.Second); err != nil {
		return err
	}
	if err := f.WaitTargets(f.ctx, true, cluster.VMs[2].IP); err != nil {
		return fmt.Errorf("the old leader has written what it knew: %w", err)
	}
	return f.undo(next)
}

func stopLeader(f *field) error {
	if err := f.leader.Stop(); err != nil {
		return err
	}
	f.note("ended after %s", time.Since(f.mark.Time).Round(time.Millisecond))
	if _, err := f.newLeader(); err != nil {
		return err
	}
	return f.restart(f.leader)
}

// refuses checks that a server without a quorum takes no write.
func (f *field) refuses(m *cluster.Member) error {
	status, answer, err := m.Do(f.ctx, http.MethodPost, server.NetworkingPath+"/network", cluster.NetworkBody("lost", "10.98.0"))
	if err == nil && status < 500 {
		return fmt.Errorf("%s is alone and answers a write with %d: %s", m.Name, status, answer)
	}
	f.note("alone it answers %d", status)
	return nil
}

func leaderAlone(f *field) error {
	if err := f.Isolate(f.ctx, f.leader, cluster.Everything); err != nil {
		return err
	}
	next, err := f.newLeaderBeside(f.leader)
	if err != nil {
		return err
	}
	if err := f.refuses(f.leader); err != nil {
		return err
	}
	if err := f.work(next); err != nil {
		return err
	}
	if err := rest(f, outage()-time.Since(f.mark.Time)); err != nil {
		return err
	}
	if err := f.Heal(f.ctx); err != nil {
		return err
	}
	if _, err := f.WaitLeader(f.ctx, soon); err != nil {
		return err
	}
	return f.undo(next)
}

// newLeaderBeside is newLeader while the old one may still believe that it leads.
func (f *field) newLeaderBeside(old *cluster.Member) (*cluster.Member, error) {
	took, err := f.WaitMasters(f.ctx, f.mark, old)
	if err != nil {
		return nil, err
	}
	f.note("MASTER of all after %s", took.Round(time.Millisecond))
	var next *cluster.Member
	err = cluster.Await(f.ctx, soon, "another leader", func() (err error) {
		next, err = f.LeaderAmong(f.ctx, f.Followers(old))
		return err
	})
	return next, err
}

func killAll(f *field) error {
	return f.without(func() error { return rest(f, outage()) })
}

// deleteRules takes all rules of the gateway that stands by while nobody looks.
func deleteRules(f *field) error {
	return f.without(func() error {
		_, err := f.Node(lab.GatewayName(2)).Ofctl(f.ctx, nil, "del-flows", lab.BrInt)
		return err
	})
}

// without kills all servers, does something and starts them again.
func (f *field) without(do func() error) error {
	for _, m := range f.Members {
		if err := m.Kill(); err != nil {
			return err
		}
	}
	if err := do(); err != nil {
		return err
	}
	began := time.Now()
	for _, m := range f.Members {
		if err := m.Launch(); err != nil {
			return err
		}
	}
	for _, m := range f.Members {
		if err := m.WaitReady(f.ctx); err != nil {
			return fmt.Errorf("%s: %w", m.Name, err)
		}
	}
	f.note("ready again after %s", time.Since(began).Round(time.Millisecond))
	return nil
}

func rollingRestart(f *field) error {
	for _, m := range f.Members {
		if err := m.Stop(); err != nil {
			return err
		}
		if err := f.restart(m); err != nil {
			return err
		}
		if err := f.Connect(f.ctx); err != nil {
			return err
		}
		if _, err := f.WaitLeader(f.ctx, soon); err != nil {
			return err
		}
	}
	return nil
}

func killSwitch(f *field) error {
	node := f.Node(lab.Worker(1))
	return errors.Join(node.KillSwitch(), node.StartSwitch(f.ctx))
}

// The connection to the gateway's br-int ends when the second message of a bundle
// was to pass that changes a rule or group. br-tun is still there, so the router
// stays. When br-int is back, nothing of the bundle may be missing.
func cutBundle(f *field) error {
	cut, seen := make(chan struct{}), 0
	f.leader.Relay.CutWhen(lab.Gateway+"/"+lab.BrInt, func(m relay.Frame) bool {
		if m.BundleAdd && m.Writes() {
			seen++
		}
		if seen == 2 {
			close(cut)
		}
		return seen == 2
	})
	if err := f.leader.Write(f.ctx, http.MethodPost, server.NetworkingPath+"/loadbalancer", aside()); err != nil {
		return err
	}
	select {
	case <-cut:
	case <-time.After(soon):
		return errors.New("no bundle of two messages came")
	}
	if err := f.WaitNodes(f.ctx, f.leader); err != nil {
		return err
	}
	if err := f.WaitTargets(f.ctx, true, cluster.VMs[2].IP); err != nil {
		return err
	}
	return f.undo(f.leader)
}
