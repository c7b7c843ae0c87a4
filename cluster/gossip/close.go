package gossip

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

// closeTime bounds Close if its context doesn't.
const closeTime = 2 * time.Second

// Close takes leave of the others and ends everything. It returns early when ctx
// ends, or after two seconds; what is left then ends by itself soon.
func (g *Gossip) Close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, closeTime)
	defer cancel()
	g.once.Do(func() {
		go func() {
			defer close(g.closed)
			g.leave()
			g.shutdown()
		}()
	})
	select {
	case <-g.closed:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("close the gossip: %w", context.Cause(ctx))
	}
}

// leave tells the others that this server goes.
func (g *Gossip) leave() {
	bye, _ := frame{kind: frameLeave, from: g.c.Name, instance: g.id.instance}.encode()
	var told sync.WaitGroup
	for _, m := range alive(g.Members()) {
		n, err := node(m)
		if m.Name == g.c.Name || err != nil {
			continue
		}
		// A packet is there at once, a stream is there for sure.
		_ = g.ml.SendBestEffort(n, bye)
		told.Go(func() { _ = g.ml.SendReliable(n, bye) })
	}
	// What memberlist says of it to others is no matter of waiting: the members
	// have been told already.
	_ = g.ml.Leave(2 * g.gossipInterval)
	done := make(chan struct{})
	go func() {
		told.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(2 * g.gossipInterval): // somebody doesn't listen; shutdown ends the streams
	}
}

// shutdown ends everything without a word to the others.
func (g *Gossip) shutdown() {
	g.stop(ErrClosed)
	if err := g.ml.Shutdown(); err != nil && !errors.Is(err, net.ErrClosed) {
		g.c.Logger.Warn("the gossip has not been closed properly", "err", err)
	}
	g.wg.Wait()
}
