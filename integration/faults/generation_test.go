package faults

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/http"
	"time"

	"kvnet/integration/cluster"
	"kvnet/integration/lab"
	"kvnet/integration/relay"
	"kvnet/integration/server"
)

// pauses is how often a leader is paused while a write of it is under way.
const pauses = 3

// A leader is paused while a commit of it is on the way to a switch. Another server
// takes over and undoes what the commit is about. When the commit arrives at last the
// switch must refuse it.
func pauseDuringWrite(f *field) error {
	for range pauses {
		if err := f.lateCommit(); err != nil {
			return err
		}
	}
	f.note("%d commits came too late", pauses)
	return nil
}

// Servers that use no generation ids do the same. If the relays didn't see two
// writers then, they would never see any.
func pauseWithoutGenerations(f *field) (err error) {
	binary, err := server.NoGenerationBinary()
	if err != nil {
		return err
	}
	if f.World, err = startedWith(f.ctx, binary, servers, false); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if f.leader, err = f.WaitLeader(f.ctx, soon); err != nil {
		return err
	}
	f.mark = f.Mark()
	if err := f.lateCommit(); err != nil {
		return err
	}
	v := f.Judge(f.mark)
	f.verdict = &v
	if v.Writers() < 2 {
		return errors.New("the relays saw no second writer, though nothing kept one from writing")
	}
	f.note("the switch took %d rules and groups that came too late", len(v.Strangers))
	return nil
}

// late is how often a commit may get lost before it could come too late: a switch
// that waits for too long for an echo ends the connection.
const late = 5

// lateCommit has a commit of the leader come to a switch when another server is
// MASTER, and waits until the cluster is whole again.
func (f *field) lateCommit() error {
	for range late {
		answered, err := f.tryLateCommit()
		if err == nil {
			err = f.Connect(f.ctx)
		}
		if err != nil {
			return err
		}
		// The audit takes away what doesn't belong there.
		if err := f.WaitTargets(f.ctx, false, cluster.VMs[2].IP); err != nil {
			return err
		}
		if f.leader, err = f.WaitLeader(f.ctx, soon); err != nil || answered {
			return err
		}
	}
	return fmt.Errorf("of %d commits none came to the switch", late)
}

// tryLateCommit tells whether the switch has answered the commit.
func (f *field) tryLateCommit() (answered bool, err error) {
	old, name := f.leader, lab.Gateway+"/"+lab.BrInt
	held := make(chan uint32, 1) // the transaction
	old.Relay.FreezeWhen(name, func(m relay.Frame) bool {
		_, request, ok := m.BundleControl()
		if ok = ok && request == relay.BundleCommit; ok {
			held <- transaction(m)
		}
		return ok
	})
	defer old.Relay.Thaw(name)
	if err := f.ask(old, http.MethodPost, server.NetworkingPath+"/loadbalancer", aside(), http.StatusCreated); err != nil {
		return false, err
	}
	var commit uint32
	select {
	case commit = <-held:
	case <-time.After(soon):
		return false, errors.New("the leader has sent no bundle")
	}
	mark := f.Mark()
	if err := old.Pause(); err != nil {
		return false, err
	}
	if err := f.undoBy(mark, old); err != nil {
		return false, errors.Join(err, old.Resume())
	}
	from := old.Relay.Mark()
	if err := old.Resume(); err != nil {
		return false, err
	}
	old.Relay.Thaw(name)
	err = cluster.Await(f.ctx, soon, "an answer to the late commit, or the end of its connection", func() error {
		answered = len(old.Relay.Since(from, func(m relay.Frame) bool {
			return m.Switch == name && m.Direction == relay.ToServer && transaction(m) == commit &&
				(m.Type == relay.Error || m.Type == relay.Experimenter)
		})) > 0
		if !answered && old.Relay.Connected(name) {
			return errors.New("there is none")
		}
		return nil
	})
	return answered, err
}

// undoBy waits until another server has done what the old leader was about to do,
// and has it undone.
func (f *field) undoBy(mark cluster.Mark, old *cluster.Member) error {
	if _, err := f.WaitMasters(f.ctx, mark, old); err != nil {
		return err
	}
	if err := f.WaitTargets(f.ctx, true, cluster.VMs[2].IP); err != nil {
		return err
	}
	return f.undo(f.Followers(old)[0])
}

func transaction(m relay.Frame) uint32 { return binary.BigEndian.Uint32(m.Bytes[4:]) }
