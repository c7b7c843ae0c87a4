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
	"go.etcd.io/raft/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// newClient makes a client of the engine in this process that waits through an
// election, but not through a loss of the quorum. etcd refuses writes at once
// while it knows of no leader, and lets reads wait for 6 s and more. Here both
// wait until there is a leader, for no longer than patience, and then fail. What
// surely wasn't carried out because the leader has changed is repeated.
func newClient(server *etcdserver.EtcdServer, patience time.Duration) *clientv3.Client {
	c := v3client.New(server)
	kv := adapter.KvServerToKvClient(v3rpc.NewQuotaKVServer(server))
	c.KV = clientv3.NewKVFromKVClient(patientKV{kv, server, patience}, c)
	return c
}

// election tells of the engine's leader. *etcdserver.EtcdServer implements it.
type election interface {
	// Lead is the id of the leader, or raft.None.
	Lead() uint64
	// LeaderChangedNotify is closed when there is another leader.
	LeaderChangedNotify() <-chan struct{}
}

// patientKV is a client that waits for a leader.
type patientKV struct {
	pb.KVClient
	server   election
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
	err = k.retry(ctx, func() (bool, error) {
		err := k.underOneLeader(ctx, func(ctx context.Context) (err error) {
			resp, err = k.KVClient.Txn(ctx, r, opts...)
			return err
		})
		// A transaction that only reads ends like a read.
		return dropped(err) || onlyReads(r) && errors.Is(rpctypes.Error(err), rpctypes.ErrLeaderChanged), err
	})
	return resp, err
}

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
		if !sleep(ctx, 10*time.Millisecond) {
			return errors.Join(err, context.Cause(ctx))
		}
	}
}

// errLeaderGone is the error of a write that was under way when the leader
// changed. It may or may not have been carried out.
var errLeaderGone = status.Error(codes.Unavailable, "the store's leader has changed while the write was under way")

// underOneLeader gives f up some time after the leader has changed. What was on
// its way to a leader that died never gets an answer, and etcd would wait 6 s for
// it; what had reached another member is answered as soon as that one leads.
func (k patientKV) underOneLeader(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	changed := k.server.LeaderChangedNotify()
	go func() {
		select {
		case <-changed:
			if sleep(ctx, k.patience/2) {
				cancel(errLeaderGone)
			}
		case <-ctx.Done():
		}
	}()
	err := f(ctx)
	if err != nil && errors.Is(context.Cause(ctx), errLeaderGone) {
		return errLeaderGone
	}
	return err
}

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
