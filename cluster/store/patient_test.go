package store

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.etcd.io/etcd/server/v3/storage/backend"
	"go.etcd.io/raft/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// engine answers with errors, one a call, and then with success.
type engine struct {
	pb.KVClient
	mu       sync.Mutex
	lead     uint64
	changed  chan struct{}
	errs     []error
	calls    int
	hang     chan struct{} // closed when the first call hangs; nil: none does
	fenced   []error       // of the first writes of the fence
	revision int64
	swapped  bool // Backend is another one each time
}

func (e *engine) Lead() uint64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.lead
}

func (e *engine) Backend() backend.Backend {
	if e.swapped {
		return &struct{ backend.Backend }{}
	}
	return nil
}

func (e *engine) Put(context.Context, *pb.PutRequest, ...grpc.CallOption) (*pb.PutResponse, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.fenced) > 0 {
		err := e.fenced[0]
		e.fenced = e.fenced[1:]
		return nil, err
	}
	e.revision++
	return &pb.PutResponse{Header: &pb.ResponseHeader{Revision: e.revision}}, nil
}

func (e *engine) LeaderChangedNotify() <-chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.changed
}

// changeLeader tells those that wait. The next change is another one.
func (e *engine) changeLeader() {
	e.mu.Lock()
	defer e.mu.Unlock()
	close(e.changed)
	e.changed = make(chan struct{})
}

func (e *engine) call(ctx context.Context) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.calls++
	if e.hang != nil && e.calls == 1 {
		close(e.hang)
		e.mu.Unlock()
		<-ctx.Done()
		e.mu.Lock()
		return ctx.Err()
	}
	if len(e.errs) == 0 {
		return nil
	}
	err := e.errs[0]
	e.errs = e.errs[1:]
	return err
}

func (e *engine) Txn(ctx context.Context, _ *pb.TxnRequest, _ ...grpc.CallOption) (*pb.TxnResponse, error) {
	return &pb.TxnResponse{Succeeded: true}, e.call(ctx)
}

func (e *engine) Range(ctx context.Context, _ *pb.RangeRequest, _ ...grpc.CallOption) (*pb.RangeResponse, error) {
	return &pb.RangeResponse{}, e.call(ctx)
}

func put() *pb.TxnRequest {
	return &pb.TxnRequest{Success: []*pb.RequestOp{{Request: &pb.RequestOp_RequestPut{RequestPut: &pb.PutRequest{}}}}}
}

func TestOnlyWhatWasNotCarriedOutIsRepeated(t *testing.T) {
	dropped := status.Error(codes.Unknown, raft.ErrProposalDropped.Error())
	changed, timeout := rpctypes.ErrGRPCLeaderChanged, rpctypes.ErrGRPCTimeout
	for name, c := range map[string]struct {
		errs  []error
		write bool
		calls int
		want  error
	}{
		"a write that was dropped":     {[]error{dropped, dropped}, true, 3, nil},
		"a write with unknown outcome": {[]error{timeout}, true, 1, timeout},
		"a write that found a change":  {[]error{changed}, true, 1, changed},
		"a read that found a change":   {[]error{changed, changed}, false, 3, nil},
		"a read that took too long":    {[]error{timeout}, false, 1, timeout},
	} {
		e := &engine{lead: 1, errs: c.errs}
		k := patientKV{e, e, newFence(e, e, "a"), time.Minute}
		var err error
		if c.write {
			_, err = k.Txn(t.Context(), put())
		} else {
			_, err = k.Range(t.Context(), &pb.RangeRequest{})
		}
		if !errors.Is(err, c.want) || e.calls != c.calls {
			t.Errorf("%s: %d calls, error %v", name, e.calls, err)
		}
	}
	e := &engine{lead: 1, errs: []error{changed}}
	if _, err := (patientKV{e, e, newFence(e, e, "a"), time.Minute}).Txn(t.Context(), &pb.TxnRequest{}); err != nil || e.calls != 2 {
		t.Errorf("a transaction without writes: %d calls, error %v", e.calls, err)
	}
}

func TestWithoutALeaderPatienceEnds(t *testing.T) {
	e := &engine{}
	k := patientKV{e, e, newFence(e, e, "a"), time.Millisecond}
	if _, err := k.Txn(t.Context(), put()); !errors.Is(classify(err), ErrUnavailable) || e.calls != 0 {
		t.Errorf("a write: %d calls, error %v", e.calls, err)
	}
	if _, err := k.Range(t.Context(), &pb.RangeRequest{}); !errors.Is(classify(err), ErrUnavailable) || e.calls != 0 {
		t.Errorf("a read: %d calls, error %v", e.calls, err)
	}
	if _, err := k.Range(t.Context(), &pb.RangeRequest{Serializable: true}); err != nil || e.calls != 1 {
		t.Errorf("a read of what is here: %d calls, error %v", e.calls, err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := (patientKV{e, e, newFence(e, e, "a"), time.Hour}).Txn(gone, put()); !errors.Is(err, context.Canceled) {
		t.Errorf("a write whose context has ended: %v", err)
	}
}

func TestAWriteToALeaderThatDiedIsRepeatedBehindAFence(t *testing.T) {
	for name, c := range map[string]struct {
		revision int64
		swapped  bool    // a snapshot came in between
		fence    []error // of the writes of the fence
		calls    int
		want     error
	}{
		"it is lost":                 {calls: 2},
		"the fence is lost, too":     {fence: []error{status.Error(codes.Unknown, raft.ErrProposalDropped.Error())}, calls: 2},
		"the fence can't be written": {fence: []error{rpctypes.ErrGRPCTimeout}, calls: 1, want: errLeaderGone},
		"it may be in a snapshot":    {swapped: true, calls: 1, want: errLeaderGone},
	} {
		e := &engine{lead: 1, changed: make(chan struct{}), hang: make(chan struct{}), fenced: c.fence, swapped: c.swapped}
		go func() {
			<-e.hang
			e.changeLeader()
		}()
		_, err := patientKV{e, e, newFence(e, e, "a"), time.Minute}.Txn(t.Context(), put())
		if !errors.Is(err, c.want) || c.want != nil && !errors.Is(classify(err), ErrUnavailable) || e.calls != c.calls {
			t.Errorf("%s: %d calls, error %v", name, e.calls, err)
		}
	}
}
