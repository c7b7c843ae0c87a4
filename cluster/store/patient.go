package store

import (
	"context"
	"errors"
	"strings"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/etcdserver"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3rpc"
	"go.etcd.io/etcd/server/v3/proxy/grpcproxy/adapter"
	"go.etcd.io/etcd/server/v3/storage/backend"
	"go.etcd.io/raft/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"kvnet/internal/pause"
)

// newClient makes a client of the engine in this process that waits through an
// election, but not through a loss of the quorum. etcd refuses writes at once
// while it knows of no leader, and lets reads wait for 6 s and more. Here both
// wait until there is a leader, for no longer than patience, and then fail. What
// surely wasn't carried out because the leader has changed is repeated. name is
// this member's.
func newClient(server *etcdserver.EtcdServer, name string, patience time.Duration) *clientv3.Client {
	c := v3client.New(server)
	kv := adapter.KvServerToKvClient(v3rpc.NewQuotaKVServer(server))
	c.KV = clientv3.NewKVFromKVClient(patientKV{kv, server, newFence(kv, server, name), patience}, c)
	return c
}

// election tells of the engine's leader. *etcdserver.EtcdServer implements it.
type election interface {
	// Lead is the id of the leader, or raft.None.
	Lead() uint64
	// LeaderChangedNotify is closed when there is another leader.
	LeaderChangedNotify() <-chan struct{}
	// Backend is another one when a snapshot has taken the place of the data.
	Backend() backend.Backend
}

// patientKV is a client that waits for a leader.
type patientKV struct {
	pb.KVClient
	server   election
	fence    *fence
	patience time.Duration
}

// Range implements pb.KVClient.
func (k patientKV) Range(ctx context.Context, r *pb.RangeRequest, opts ...grpc.CallOption) (resp *pb.RangeResponse, err error) {
	if r.Serializable {
		return k.KVClient.Range(ctx, r, opts...)
	}
	err = k.retry(ctx, func() (bool, error) {
		resp, err = k.KVClient.Range(ctx, r, opts...)
		return errors.Is(rpctypes.Error(err), rpctypes.ErrLeaderChanged), err
	})
	return resp, err
}

// Txn implements pb.KVClient.
func (k patientKV) Txn(ctx context.Context, r *pb.TxnRequest, opts ...grpc.CallOption) (resp *pb.TxnResponse, err error) {
	reads := onlyReads(r)
	err = k.retry(ctx, func() (again bool, err error) {
		if !reads {
			resp, again, err = k.write(ctx, r, opts...)
			return again, err
		}
		resp, err = k.KVClient.Txn(ctx, r, opts...)
		return dropped(err) || errors.Is(rpctypes.Error(err), rpctypes.ErrLeaderChanged), err
	})
	return resp, err
}

// write carries a transaction out at most once. again tells that this one surely
// wasn't and never will be. err is not nil then.
func (k patientKV) write(ctx context.Context, r *pb.TxnRequest, opts ...grpc.CallOption) (resp *pb.TxnResponse, again bool, err error) {
	data := k.server.Backend()
	held := k.fence.held()
	resp, err = k.answer(ctx, held, func(ctx context.Context) (*pb.TxnResponse, error) {
		return k.KVClient.Txn(ctx, k.fence.guard(r, held), opts...)
	})
	switch {
	case errors.Is(err, errFenced) && k.server.Backend() != data:
		// It may have come with the snapshot, and nobody answers for that.
		return nil, false, errLeaderGone
	case err != nil:
		return nil, dropped(err) || errors.Is(err, errFenced), err
	case !k.fence.stood(resp, held):
		return nil, true, errFenced
	}
	return resp, false, nil
}

// patienceRounds is how often the goroutine of an answer gets a millisecond to
// hand it over. They are counted, and not the time, so that it had its turns also
// if the process was stopped meanwhile.
const patienceRounds = 20

// answer waits for the answer to a write. When the leader changes meanwhile, the
// write may have been on its way to one that is dead, and etcd would wait 6 s for
// its answer. Then the fence is raised: whatever is in the log before that is
// carried out and answered first, by this very process, and anything of the write
// that turns up later is refused. So without an answer by then it is errFenced.
func (k patientKV) answer(ctx context.Context, held int64, write func(context.Context) (*pb.TxnResponse, error)) (*pb.TxnResponse, error) {
	call, cancel := context.WithCancel(ctx)
	defer cancel()
	type answer struct {
		resp *pb.TxnResponse
		err  error
	}
	changed := k.server.LeaderChangedNotify()
	answered := make(chan answer, 1)
	go func() {
		resp, err := write(call)
		answered <- answer{resp, err}
	}()
	select {
	case a := <-answered:
		return a.resp, a.err
	case <-changed:
	}
	err := k.fence.raise(ctx, held)
	if err == nil {
		err = errFenced
	} else {
		err = errors.Join(errLeaderGone, err)
	}
	for range patienceRounds {
		select {
		case a := <-answered:
			return a.resp, a.err
		default:
		}
		if !pause.For(ctx, time.Millisecond) {
			break
		}
	}
	cancel()
	if a := <-answered; a.err == nil {
		return a.resp, nil
	}
	return nil, err
}

// retryPause is between two tries.
const retryPause = 10 * time.Millisecond

// retry repeats f, which tells whether its error is worth it.
func (k patientKV) retry(ctx context.Context, f func() (again bool, err error)) error {
	for end := time.Now().Add(k.patience); ; {
		err := rpctypes.ErrGRPCNoLeader
		again := true
		if k.server.Lead() != raft.None {
			again, err = f()
		}
		if !again || time.Now().After(end) {
			return err
		}
		if !pause.For(ctx, retryPause) {
			return errors.Join(err, context.Cause(ctx))
		}
	}
}

// errLeaderGone is the error of a write that was under way when the leader
// changed. It may or may not have been carried out.
var errLeaderGone = status.Error(codes.Unavailable, "the store's leader has changed while the write was under way")

// dropped tells that raft has refused a proposal without taking it in. The error
// has lost its type on its way through etcd's layers.
func dropped(err error) bool {
	return err != nil && strings.Contains(err.Error(), raft.ErrProposalDropped.Error())
}

func onlyReads(r *pb.TxnRequest) bool {
	for _, ops := range [][]*pb.RequestOp{r.Success, r.Failure} {
		for _, op := range ops {
			if op.GetRequestRange() == nil {
				return false
			}
		}
	}
	return true
}
