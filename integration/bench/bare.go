package bench

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"                //nolint:depguard // the bare engine is what kvnet is compared with
	"go.etcd.io/etcd/server/v3/embed"                   //nolint:depguard // as above
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client" //nolint:depguard // as above
	"go.uber.org/zap"

	"kvnet/integration/freeport"
)

// bare is the engine of the store by itself, in this process, with the settings
// that the store gives it.
type bare struct {
	etcd   *embed.Etcd
	client *clientv3.Client
}

// startBare starts the engine in dir and waits until it is ready.
func startBare(ctx context.Context, dir string) (*bare, error) {
	at, err := freeport.Address()
	if err != nil {
		return nil, err
	}
	peer := url.URL{Scheme: "http", Host: at}
	cfg := embed.NewConfig()
	cfg.Name, cfg.Dir = "bare", dir
	cfg.ListenPeerUrls, cfg.AdvertisePeerUrls = []url.URL{peer}, []url.URL{peer}
	cfg.ListenClientUrls, cfg.AdvertiseClientUrls = nil, nil
	cfg.EnableGRPCGateway = false
	cfg.InitialCluster = cfg.InitialClusterFromName(cfg.Name)
	cfg.TickMs, cfg.ElectionMs = 20, 200
	cfg.InitialElectionTickAdvance = true
	cfg.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.NewNop())
	etcd, err := embed.StartEtcd(cfg)
	if err != nil {
		return nil, fmt.Errorf("start the bare engine: %w", err)
	}
	select {
	case <-etcd.Server.ReadyNotify():
	case <-time.After(30 * time.Second):
		etcd.Close()
		return nil, errors.New("the bare engine did not start in time")
	case <-ctx.Done():
		etcd.Close()
		return nil, context.Cause(ctx)
	}
	return &bare{etcd, v3client.New(etcd.Server)}, nil
}

// create puts a value at a key that must be absent.
func (b *bare) create(ctx context.Context, key, value string) error {
	r, err := b.client.Txn(ctx).If(clientv3.Compare(clientv3.CreateRevision(key), "=", 0)).Then(clientv3.OpPut(key, value)).Commit()
	if err == nil && !r.Succeeded {
		err = errors.New("it exists")
	}
	if err != nil {
		return fmt.Errorf("create %q in the bare engine: %w", key, err)
	}
	return nil
}

func (b *bare) close() { b.etcd.Close() }
