package faults

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"kvnet/integration/cluster"
	"kvnet/integration/lab"
	"kvnet/integration/relay"
	"kvnet/integration/server"
)

// faults are all cases, in the order in which they run.
var faults = []fault{
	{name: "leader killed during writes", inject: killDuringWrites},
	{name: "leader paused for 30 s", inject: pauseLeader},
	{name: "leader stopped", inject: stopLeader},
	{name: "leader alone", inject: leaderAlone},
	{name: "all servers killed", inject: killAll},
	{name: "rolling restart", inject: rollingRestart},
	{name: "switch killed", loses: true, rewritten: []string{"w1"}, inject: killSwitch},
	{name: "cut within a bundle", loses: true, rewritten: []string{"gw1", "gw2", "w1"}, inject: cutBundle},
	{name: "wrong key", inject: wrongKey},
	{name: "garbage for the gossip", inject: garbage},
	{name: "join without expect", inject: joinNobody},
	{name: "four servers, expect 3", inject: fourOfThree},
	{name: "from one server to three", own: true, inject: scaleUp},
	{name: "leader swapped for a new server", inject: swapMember},
	{name: "leader is not heard", inject: leaderNotHeard},
	{name: "leader hears nothing", inject: leaderDeaf},
	{name: "UDP cut", inject: cutProtocol(cluster.UDP)},
	{name: "TCP cut", inject: cutProtocol(cluster.TCP)},
	{name: "30 % loss", inject: packetLoss},
	{name: "switch frozen", rewritten: []string{"gw2"}, inject: freezeSwitch},
	{name: "switches reach different servers", inject: splitReach},
	{name: "disk of the leader full", own: true, inject: fullDisk},
	{name: "restored backup", own: true, inject: restoreBackup},
}

// outage is how long partitions and outages last.
func outage() time.Duration {
	if *long {
		return time.Minute
	}
	return 10 * time.Second
}

// rest lets the time of a fault pass.
func rest(f *field, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-f.ctx.Done():
		return f.ctx.Err()
	}
}

// restart starts a server that has ended, with its data.
func (f *field) restart(m *cluster.Member) error {
	if err := m.Start(f.ctx); err != nil {
		return fmt.Errorf("%s: %w", m.Name, err)
	}
	return nil
}

// keep writes networks by all servers while do runs, and checks that none of those
// that were acknowledged is lost.
func (f *field) keep(do func() error) error {
	const prefix = "burst"
	b := f.StartBurst(f.ctx, prefix)
	err := cluster.Await(f.ctx, soon, "some writes", func() error {
		if n := b.Accepted(); n < 30 {
			return fmt.Errorf("%d writes", n)
		}
		return nil
	})
	if err == nil {
		err = do()
	}
	accepted, failed := b.Stop()
	f.note("%d writes kept, %d failed", len(accepted), failed)
	if err != nil {
		return err
	}
	for _, m := range f.Serving() {
		if err := cluster.Await(f.ctx, 5*time.Second, "all writes on "+m.Name, func() error { return f.Missing(f.ctx, m, accepted) }); err != nil {
			return err
		}
	}
	return f.Forget(f.ctx, f.Serving()[0], prefix)
}

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

// asideID is a balancer the changes of which disturb no traffic.
const asideID = "aside"

func aside() map[string]any {
	body := cluster.BalancerBody(cluster.VMs[2].IP)
	body["name"], body["vip"] = asideID, "192.168.10.252"
	return body
}

// work has a server make the balancer beside, and waits until it is on the switch.
// An attempt whose answer got lost may have made it already.
func (f *field) work(m *cluster.Member) error {
	if err := f.ask(m, http.MethodPost, server.NetworkingPath+"/loadbalancer", aside(), http.StatusCreated, http.StatusConflict); err != nil {
		return err
	}
	return f.WaitTargets(f.ctx, true, cluster.VMs[2].IP)
}

// undo has a server delete the balancer beside, and waits until it is gone.
func (f *field) undo(m *cluster.Member) error {
	if err := f.ask(m, http.MethodDelete, server.ObjectPath("loadbalancer", asideID), nil, http.StatusNoContent, http.StatusNotFound); err != nil {
		return err
	}
	return f.WaitTargets(f.ctx, false, cluster.VMs[2].IP)
}

// ask sends a request that must be answered with one of these.
func (f *field) ask(m *cluster.Member, method, path string, body any, statuses ...int) error {
	status, answer, err := m.Do(f.ctx, method, path, body)
	if err == nil && !slices.Contains(statuses, status) {
		err = fmt.Errorf("%d %s", status, answer)
	}
	if err != nil {
		return fmt.Errorf("%s %s of %s: %w", method, path, m.Name, err)
	}
	return nil
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
	for _, m := range f.Members {
		if err := m.Kill(); err != nil {
			return err
		}
	}
	if err := rest(f, outage()); err != nil {
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

// The connection to the gateway ends when the second message of a bundle was to
// pass that changes a rule or group. The router moves to the other gateway, as it
// has to. When it is moved back, nothing of the bundle may be missing.
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
	if err := f.Connect(f.ctx); err != nil {
		return err
	}
	if err := f.WaitNodes(f.ctx, f.leader); err != nil {
		return err
	}
	if err := f.leader.Write(f.ctx, http.MethodPut, server.ObjectPath("router", cluster.Router), cluster.RouterBody()); err != nil {
		return err
	}
	if err := f.WaitTargets(f.ctx, true, cluster.VMs[2].IP); err != nil {
		return err
	}
	return f.undo(f.leader)
}
