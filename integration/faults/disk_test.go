package faults

import (
	"errors"

	"kvnet/integration/cluster"
)

// The leader's disk is full: its writes fail or another server takes over, and
// nothing is lost when there is space again.
func fullDisk(f *field) (err error) {
	return f.own(servers, true, func() error {
		f.mark = f.Mark()
		free, err := cluster.Fill(f.leader.Dir)
		if err != nil {
			return err
		}
		return f.keepDespite(free)
	})
}

func (f *field) keepDespite(free func() error) error {
	b := f.StartBurst(f.ctx, "full")
	err := rest(f, outage())
	accepted, failed := b.Stop()
	f.note("while full %d writes were taken, %d refused", len(accepted), failed)
	if err = errors.Join(err, free()); err != nil {
		return err
	}
	if !f.leader.Running() {
		f.note("the leader ended")
		if err := f.restart(f.leader); err != nil {
			return err
		}
	}
	if err := f.recover(f.ctx); err != nil {
		return err
	}
	for _, m := range f.Serving() {
		if err := f.Missing(f.ctx, m, accepted); err != nil {
			return err
		}
	}
	return f.ProveWork(f.ctx)
}
