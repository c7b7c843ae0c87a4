package gossip

import (
	"sync"
	"time"
)

// troubleLasts is how long a trouble counts after it was met last. Attempts to reach
// others come every few seconds.
const troubleLasts = 15 * time.Second

// trouble is what last kept this server from being in touch with others, or from
// founding a cluster with them.
type trouble struct {
	mu   sync.Mutex
	text string
	at   time.Time
}

func (t *trouble) set(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text, t.at = text, time.Now()
}

// Trouble says why others are refused, by this server or by themselves, or why no
// cluster is founded. Empty: nothing of the kind was met lately.
func (g *Gossip) Trouble() string {
	t := &g.trouble
	t.mu.Lock()
	defer t.mu.Unlock()
	if time.Since(t.at) > troubleLasts {
		return ""
	}
	return t.text
}
