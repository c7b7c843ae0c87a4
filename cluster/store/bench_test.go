package store

import (
	"context"
	"log/slog"
	"strconv"
	"sync/atomic"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"kvnet/model"
)

// The three benchmarks write values of the same size, so that their difference
// is what the store adds to the engine: encoding, the check that the value can
// be read, deadlines, the look at the space; and then the way through the watch
// into the tables.

func quiet(b *testing.B) Config {
	c := config(b)
	c.Logger = slog.New(slog.DiscardHandler)
	return c
}

func bench(b *testing.B, write func(ctx context.Context, f *fixture, id string) error) {
	for _, c := range []struct {
		name    string
		writers int // for each processor
	}{{"alone", 0}, {"together", 16}} {
		b.Run(c.name, func(b *testing.B) {
			f := open(b, quiet(b))
			ctx := context.Background()
			var n atomic.Int64
			one := func() {
				if err := write(ctx, f, strconv.FormatInt(n.Add(1), 10)); err != nil {
					b.Error(err)
				}
			}
			b.ReportAllocs()
			b.ResetTimer()
			if c.writers == 0 {
				for b.Loop() {
					one()
				}
				return
			}
			b.SetParallelism(c.writers)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					one()
				}
			})
		})
	}
}

func BenchmarkBareTransaction(b *testing.B) {
	value, err := encodeObject(network("12345678"), maxRequest)
	if err != nil {
		b.Fatal(err)
	}
	bench(b, func(ctx context.Context, f *fixture, id string) error {
		key := mustObjectKey(model.KindNetwork, id)
		_, err := f.client.Txn(ctx).If(clientv3.Compare(clientv3.CreateRevision(key), "=", 0)).
			Then(clientv3.OpPut(key, string(value))).Commit()
		return err
	})
}

func BenchmarkCreate(b *testing.B) {
	bench(b, func(ctx context.Context, f *fixture, id string) error {
		_, err := f.Create(ctx, network(id))
		return err
	})
}

func BenchmarkCreateAndReadOwnWrite(b *testing.B) {
	bench(b, func(ctx context.Context, f *fixture, id string) error {
		rev, err := f.Create(ctx, network(id))
		if err != nil {
			return err
		}
		return f.db.WaitRevision(ctx, rev)
	})
}

func BenchmarkUpdate(b *testing.B) {
	f := open(b, quiet(b))
	ctx := context.Background()
	if _, err := f.Create(ctx, network("n")); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := f.Update(ctx, model.KindNetwork, "n", func(o model.Object) (model.Object, error) {
			o.(*model.Network).MTU++
			return o, nil
		}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkLoadTenThousand(b *testing.B) {
	f := open(b, quiet(b))
	ctx := context.Background()
	for i := 0; i < 10000; i += 1000 {
		var w []Write
		for k := range 1000 {
			w = append(w, Write{New: network(strconv.Itoa(i + k))})
		}
		if _, err := f.Put(ctx, w); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, _, _, err := f.list(ctx, true); err != nil {
			b.Fatal(err)
		}
	}
}
