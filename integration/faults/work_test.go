package faults

import (
	"fmt"
	"net/http"
	"slices"
	"time"

	"kvnet/integration/cluster"
	"kvnet/integration/server"
)

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
