package bench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"time"

	"kvnet/handlers/all"
	"kvnet/model"
	"kvnet/model/state"
)

const (
	fewPorts, manyPorts = 1_000, 100_000
	portChanges         = 500
)

// errNotSent says that the engine sent nothing.
var errNotSent = errors.New("the rule was not sent in time")

// PortChanges moves single ports of a cloud to another worker and measures how
// long it takes from the change of the state until the rule is sent.
func PortChanges(ctx context.Context, ports int) ([]time.Duration, error) {
	db, err := newState(ports)
	if err != nil {
		return nil, err
	}
	engine, stop := startEngine(db, all.Handlers())
	defer stop()
	var messages atomic.Int64
	sent := make(chan time.Time, 1)
	engine.MasterUp(&agreeable{gatewayTun, func(n int, at time.Time) {
		messages.Add(int64(n))
		select {
		case sent <- at:
		default:
		}
	}})
	engine.MasterUp(&agreeable{gatewayInt, func(int, time.Time) {}})
	for messages.Load() < int64(ports) {
		if _, err := await(ctx, sent, time.Minute); err != nil {
			return nil, fmt.Errorf("send the first rules of %d ports: %w", ports, err)
		}
	}
	if err := silence(ctx, sent); err != nil {
		return nil, err
	}
	runtime.GC() // what was made for the start is not the change's
	before := messages.Load()
	var out []time.Duration
	for i := range portChanges {
		rev := int64(revision + 1 + i)
		p := rand.IntN(ports)
		moved := port(p, worker((p+1+rand.IntN(workers-1))%workers), rev)
		if old := db.Snapshot().PortByKey(moved.Key()); old.DeviceID == moved.DeviceID {
			continue
		}
		began := time.Now()
		if err := db.Apply(rev, []state.Event{{Kind: model.KindPort, Key: moved.Key(), Object: moved}}); err != nil {
			return nil, fmt.Errorf("move port %s: %w", moved.MAC, err)
		}
		at, err := await(ctx, sent, 10*time.Second)
		if err != nil {
			return nil, fmt.Errorf("move port %s: %w", moved.MAC, err)
		}
		out = append(out, at.Sub(began))
	}
	// More messages would mean that a time was taken for another's.
	if n := messages.Load() - before; n != int64(len(out)) {
		return nil, fmt.Errorf("%d changes of ports were sent as %d messages", len(out), n)
	}
	return out, nil
}

func await(ctx context.Context, sent <-chan time.Time, limit time.Duration) (time.Time, error) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case at := <-sent:
		return at, nil
	case <-timer.C:
		return time.Time{}, errNotSent
	case <-ctx.Done():
		return time.Time{}, context.Cause(ctx)
	}
}

// silence waits until nothing more is sent for a while.
func silence(ctx context.Context, sent <-chan time.Time) error {
	for {
		if _, err := await(ctx, sent, 300*time.Millisecond); errors.Is(err, errNotSent) {
			return nil
		} else if err != nil {
			return err
		}
	}
}
