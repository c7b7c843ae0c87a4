package store

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"kvnet/model"
)

func TestNoUpdateIsLost(t *testing.T) {
	f := open(t, config(t))
	f.at(f.Create(ctx(t), network("n")))
	const writers, rounds = 16, 12
	var wg sync.WaitGroup
	var last atomic.Int64
	for range writers {
		wg.Go(func() {
			for range rounds {
				rev, err := f.Update(ctx(t), model.KindNetwork, "n", func(o model.Object) (model.Object, error) {
					n := *o.(*model.Network)
					n.MTU++
					return &n, nil
				})
				if err != nil {
					t.Error(err)
					return
				}
				for old := last.Load(); rev > old && !last.CompareAndSwap(old, rev); old = last.Load() {
				}
			}
		})
	}
	wg.Wait()
	if got := f.at(last.Load(), nil).Network("n").MTU; got != writers*rounds {
		t.Fatalf("%d increments of %d", got, writers*rounds)
	}
}

func TestOneOfManyCreatesWins(t *testing.T) {
	f := open(t, config(t))
	for i := range 20 {
		var wg sync.WaitGroup
		var won atomic.Int64
		for range 16 {
			wg.Go(func() {
				switch _, err := f.Create(ctx(t), network(fmt.Sprint(i))); {
				case err == nil:
					won.Add(1)
				case !errors.Is(err, ErrExists):
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if won.Load() != 1 {
			t.Fatalf("%d winners", won.Load())
		}
	}
}

func TestOldNamesInPutAreCompareAndSwap(t *testing.T) {
	f := open(t, config(t))
	s := f.at(f.Put(ctx(t), []Write{{New: network("a")}, {New: network("b")}}))
	a, b := s.Network("a"), s.Network("b")
	var wg sync.WaitGroup
	var won atomic.Int64
	for range 16 {
		wg.Go(func() {
			a2, b2 := *a, *b
			a2.MTU, b2.MTU = 1, 1
			switch _, err := f.Put(ctx(t), []Write{{Old: a, New: &a2}, {Old: b, New: &b2}}); {
			case err == nil:
				won.Add(1)
			case !errors.Is(err, ErrConflict):
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if won.Load() != 1 {
		t.Fatalf("%d winners", won.Load())
	}
}

func TestTooManyOperationsAreRefusedAsAWhole(t *testing.T) {
	c := config(t)
	c.tuning.maxOps = 10
	f := open(t, c)
	var writes []Write
	for i := range 11 {
		writes = append(writes, Write{New: network(fmt.Sprint(i))})
	}
	_, err := f.Put(ctx(t), writes)
	wantErr(t, err, ErrTooLarge)
	if n := f.at(f.Put(ctx(t), writes[:10])).Len(model.KindNetwork); n != 10 {
		t.Fatalf("%d networks", n)
	}
}

func TestAnObjectOfFourMebibytesFits(t *testing.T) {
	f := open(t, config(t))
	n := network("big")
	n.Name = strings.Repeat("x", 4<<20)
	if got := f.at(f.Create(ctx(t), n)).Network("big"); len(got.Name) != 4<<20 {
		t.Fatalf("%d bytes arrived", len(got.Name))
	}
	n = network("bigger")
	n.Name = strings.Repeat("x", maxRequest)
	_, err := f.Create(ctx(t), n)
	wantErr(t, err, ErrTooLarge)
	_, err = f.Get(ctx(t), model.KindNetwork, "bigger")
	wantErr(t, err, ErrNotFound)
}
