package gossip

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

var seeds = flag.Int("seeds", 15, "number of runs of TestFoundingUnderFaults")

// TestFoundingUnderFaults lets five servers, of which three are to found a
// cluster, start, die at any point and lose each other, and looks that no two
// clusters are ever founded: any two sets of three have a server in common, and
// that one must not be in both.
func TestFoundingUnderFaults(t *testing.T) {
	const servers, expect = 5, 3
	founded := 0
	for seed := range uint64(*seeds) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				r := rand.New(rand.NewPCG(seed, 0))
				var disks [servers + 1]disk
				running := map[int]context.CancelFunc{}
				life := map[int]*server{}
				start := func(i int) {
					s := w.start(i, join(1, 2, 3, 4, 5), func(c *Config) {
						c.Meta.Expect = expect
						if disks[i].rec.Committed {
							c.ClusterID = disks[i].rec.Plan.ClusterID
						}
					})
					ctx, cancel := context.WithCancel(context.Background())
					running[i], life[i] = cancel, s
					if s.ClusterID() != "" {
						return
					}
					fate := rand.New(rand.NewPCG(seed, r.Uint64()))
					go func() {
						_, err := s.Form(ctx, FormConfig{
							Expect: expect, Records: &disks[i], Self: sm(s.Name())[0],
							died: func(string) bool { return fate.IntN(8) == 0 },
						})
						if errors.Is(err, errDied) {
							s.kill()
						}
					}()
				}
				stop := func(i int) {
					running[i]()
					life[i].kill()
					delete(running, i)
				}
				for range 60 {
					i := 1 + r.IntN(servers)
					cancel := running[i]
					switch {
					case r.IntN(4) == 0:
						j := 1 + r.IntN(servers)
						w.net.partition(r.IntN(3) == 0, addr(i), addr(j))
					case cancel != nil && (len(running) > expect || r.IntN(4) == 0):
						stop(i)
					case cancel == nil && len(running) <= expect:
						start(i)
					}
					time.Sleep(time.Duration(r.IntN(4000)) * time.Millisecond) // virtual
					ids := map[string]bool{}
					for i := range disks {
						disks[i].mu.Lock()
						if rec := disks[i].rec; rec.Committed {
							ids[rec.Plan.ClusterID] = true
						}
						disks[i].mu.Unlock()
					}
					if len(ids) > 1 {
						t.Fatalf("%d clusters have been founded", len(ids))
					}
					if len(ids) == 1 && r.IntN(10) == 0 {
						break
					}
				}
				for i := range disks {
					if disks[i].rec.Committed {
						founded++
						break
					}
				}
				for i := range running {
					stop(i)
				}
			})
		})
	}
	t.Logf("%d founded", founded)
	if founded == 0 {
		t.Error("hardly any run came to founding a cluster")
	}
}
