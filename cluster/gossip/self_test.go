package gossip

import (
	"fmt"
	"sync"
	"testing"
)

// Run with -race: what several goroutines tell of a server at once arrives, and
// memberlist is told by one of them at a time.
func TestChangesOfOwnMetaAtOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.start(1), w.start(2, join(1))
		b.sees("n1 n2")
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() {
				if err := a.UpdateMeta(func(m *Meta) { m.REST = fmt.Sprintf("10.0.0.1:%d", 8000+i) }); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		last := a.meta()
		b.hasMeta("n1", func(m Meta) bool { return m == last })
	})
}
