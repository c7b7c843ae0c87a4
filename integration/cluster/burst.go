package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"kvnet/integration/server"
)

// Burst are networks that a client creates one after the other, each by another
// server.
type Burst struct {
	stop, done chan struct{}

	mu       sync.Mutex
	accepted []string
	failed   int
}

// StartBurst creates networks until Stop.
func (w *World) StartBurst(ctx context.Context, prefix string) *Burst {
	b := &Burst{stop: make(chan struct{}), done: make(chan struct{})}
	go func() {
		defer close(b.done)
		for i := 0; ctx.Err() == nil && !b.stopped(); i++ {
			id := fmt.Sprintf("%s-%d", prefix, i)
			body := NetworkBody(id, fmt.Sprintf("10.%d.%d", 100+i/256%100, i%256))
			m := w.Members[i%len(w.Members)]
			// Longer than a server waits for its store: a request that its client
			// gives up may be carried out later.
			try, cancel := context.WithTimeout(ctx, 10*time.Second)
			err := m.Write(try, http.MethodPost, server.NetworkingPath+"/network", body)
			cancel()
			b.count(id, err)
		}
	}()
	return b
}

func (b *Burst) count(id string, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err == nil {
		b.accepted = append(b.accepted, id)
	} else {
		b.failed++
	}
}

func (b *Burst) stopped() bool {
	select {
	case <-b.stop:
		return true
	default:
		return false
	}
}

// Accepted is how many have been acknowledged so far.
func (b *Burst) Accepted() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.accepted)
}

// Stop ends the burst and returns the ids that were acknowledged, and how many
// were not.
func (b *Burst) Stop() (accepted []string, failed int) {
	close(b.stop)
	<-b.done
	return b.accepted, b.failed
}

// Missing returns an error that names the acknowledged networks that a server
// doesn't have.
func (w *World) Missing(ctx context.Context, m *Member, accepted []string) error {
	networks, err := networkIDs(ctx, m)
	if err != nil {
		return err
	}
	var errs []error
	for _, id := range accepted {
		if !networks[id] {
			errs = append(errs, fmt.Errorf("%s has lost the network %s, which was acknowledged", m.Name, id))
		}
	}
	return errors.Join(errs...)
}

// Forget deletes the networks of a burst, also those whose creation was not
// acknowledged.
func (w *World) Forget(ctx context.Context, m *Member, prefix string) error {
	networks, err := networkIDs(ctx, m)
	if err != nil {
		return err
	}
	for id := range networks {
		if strings.HasPrefix(id, prefix+"-") {
			if err := m.Write(ctx, http.MethodDelete, server.ObjectPath("network", id), nil); err != nil {
				return err
			}
		}
	}
	return nil
}

func networkIDs(ctx context.Context, m *Member) (map[string]bool, error) {
	var answer struct {
		Networks []struct {
			ID string `json:"networkId"`
		} `json:"networks"`
	}
	if err := m.Read(ctx, server.NetworkingPath+"/network", &answer); err != nil {
		return nil, fmt.Errorf("%s: %w", m.Name, err)
	}
	ids := map[string]bool{}
	for _, n := range answer.Networks {
		ids[n.ID] = true
	}
	return ids, nil
}
