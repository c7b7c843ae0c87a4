package store

import (
	"context"
	"errors"
	"sync/atomic"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"kvnet/internal/pause"
)

// errFenced is the error of a write that was not carried out and never will be.
var errFenced = status.Error(codes.Unavailable, "the store's leader has changed before the write was carried out")

// fence can make an end to the writes of this process that have no answer. Each
// write demands that the fence's key is at the revision that the process knows.
// Once the key is written again, none of them can be carried out any more,
// wherever it still is: raft hands the proposals of followers on from one member
// to another, and one that was stopped may hand them to the next leader when it
// goes on, minutes later. So a write can be repeated without being done twice.
type fence struct {
	kv       pb.KVClient
	server   election
	key      []byte
	revision atomic.Int64
	turn     chan struct{} // full while one raises it
}

// newFence makes the fence of the member of that name.
func newFence(kv pb.KVClient, server election, name string) *fence {
	return &fence{kv: kv, server: server, key: []byte(fencePrefix + escape(name)), turn: make(chan struct{}, 1)}
}

// held is the last known revision of the fence. A new process knows none, and is
// told with its first write.
func (f *fence) held() int64 { return f.revision.Load() }

// learn takes a revision of the fence in.
func (f *fence) learn(revision int64) {
	for old := f.revision.Load(); revision > old && !f.revision.CompareAndSwap(old, revision); {
		old = f.revision.Load()
	}
}

// guard makes a write depend on the fence. The request is not changed.
func (f *fence) guard(r *pb.TxnRequest, held int64) *pb.TxnRequest {
	return &pb.TxnRequest{
		Compare: append(r.Compare[:len(r.Compare):len(r.Compare)], &pb.Compare{
			Key: f.key, Target: pb.Compare_MOD, Result: pb.Compare_EQUAL,
			TargetUnion: &pb.Compare_ModRevision{ModRevision: held},
		}),
		Success: r.Success,
		Failure: append(r.Failure[:len(r.Failure):len(r.Failure)], &pb.RequestOp{
			Request: &pb.RequestOp_RequestRange{RequestRange: &pb.RangeRequest{Key: f.key}},
		}),
	}
}

// stood tells from the answer to a guarded write whether the fence was where the
// write has held it to be, and takes what is about the fence out of the answer.
func (f *fence) stood(resp *pb.TxnResponse, held int64) bool {
	n := len(resp.Responses)
	if resp.Succeeded || n == 0 {
		return true
	}
	var revision int64
	for _, kv := range resp.Responses[n-1].GetResponseRange().GetKvs() {
		revision = kv.ModRevision
	}
	resp.Responses = resp.Responses[:n-1]
	f.learn(revision)
	return revision == held
}

// raise returns when the fence is at a revision after held. Several callers are
// content with one write. That one is repeated if it is lost: it does no harm
// twice.
func (f *fence) raise(ctx context.Context, held int64) error {
	select {
	case f.turn <- struct{}{}:
		defer func() { <-f.turn }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	for f.held() <= held {
		err := f.put(ctx)
		if err != nil && !dropped(err) && !errors.Is(err, errLeaderGone) {
			return err
		}
		if err != nil && !pause.For(ctx, retryPause) {
			return errors.Join(err, context.Cause(ctx))
		}
	}
	return nil
}

// put writes the fence's key, and gives up when the leader changes.
func (f *fence) put(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	changed := f.server.LeaderChangedNotify()
	go func() {
		select {
		case <-changed:
			cancel(errLeaderGone)
		case <-ctx.Done():
		}
	}()
	resp, err := f.kv.Put(ctx, &pb.PutRequest{Key: f.key})
	if err != nil {
		if cause := context.Cause(ctx); errors.Is(cause, errLeaderGone) {
			return cause
		}
		return err
	}
	f.learn(resp.Header.Revision)
	return nil
}
