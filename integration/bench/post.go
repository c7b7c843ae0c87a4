package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"kvnet/integration/server"
)

const (
	clients       = 8
	postsOfClient = 250 // in a round
	postRounds    = 3
)

// network is a body that creates a FLAT network.
func network(id, subnet string) map[string]any {
	return map[string]any{
		"networkId": id, "type": "FLAT", "name": id, "mtu": 1500, "gatewayIp": subnet + ".1",
		"defaultRoute": true, "cidr": subnet + ".0/24",
		"ipPool": map[string]any{"start": subnet + ".10", "end": subnet + ".200"},
	}
}

// together runs work by all clients at the same time and collects their times.
func together(work func(client, n int) error) (all times, err error) {
	var wg sync.WaitGroup
	results, errs := make([]times, clients), make([]error, clients)
	for c := range clients {
		wg.Go(func() {
			for n := range postsOfClient {
				began := time.Now()
				if errs[c] = work(c, n); errs[c] != nil {
					return
				}
				results[c] = append(results[c], time.Since(began))
			}
		})
	}
	wg.Wait()
	for _, r := range results {
		all = append(all, r...)
	}
	return all, errors.Join(errs...)
}

// measurePosts creates networks by REST and values of the same size in the bare
// engine, with as many clients, in turn.
func (b *Bench) measurePosts(ctx context.Context) (f figure, err error) {
	dir, err := os.MkdirTemp("", "kvnet-bench-")
	if err != nil {
		return f, fmt.Errorf("make a folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	s, err := server.New(server.Config{Binary: b.Binary, Dir: filepath.Join(dir, "server"), Name: "bench"})
	if err != nil {
		return f, err
	}
	if err := s.Start(ctx); err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, s.Stop(), s.CheckLog()) }()
	engine, err := startBare(ctx, filepath.Join(dir, "bare"))
	if err != nil {
		return f, err
	}
	defer engine.close()
	keepAlive := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: clients}, Timeout: 15 * time.Second}
	defer keepAlive.CloseIdleConnections()

	var posts, writes times
	for round := range postRounds {
		id := func(c, n int) string { return fmt.Sprintf("net-%d-%d-%d", round, c, n) }
		w, err := together(func(c, n int) error {
			value, err := json.Marshal(network(id(c, n), "192.168.10"))
			if err != nil {
				return err
			}
			return engine.create(ctx, "/network/"+id(c, n), string(value))
		})
		if err != nil {
			return f, err
		}
		p, err := together(func(c, n int) error {
			return post(ctx, keepAlive, s.REST, network(id(c, n), "192.168.10"))
		})
		if err != nil {
			return f, err
		}
		writes, posts = append(writes, w...), append(posts, p...)
	}
	return figure{part: "c", ratio: fmt.Sprintf("POST p50 is %.1f times that of a bare create-if-absent transaction, %d clients each", over(posts.median(), writes.median()), clients),
		details: []string{
			"POST of a network, until the answer: " + posts.percentiles(),
			"bare transaction with a value of that size, in process: " + writes.percentiles(),
		}}, nil
}

// post creates a network by REST.
func post(ctx context.Context, client *http.Client, address string, body any) error {
	encoded, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("encode a network: %w", err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+address+server.NetworkingPath+"/network", bytes.NewReader(encoded))
	if err != nil {
		return fmt.Errorf("make a request: %w", err)
	}
	r.SetBasicAuth("onos", "rocks")
	r.Header.Set("Content-Type", "application/json")
	response, err := client.Do(r)
	if err != nil {
		return fmt.Errorf("POST a network: %w", err)
	}
	answer, err := io.ReadAll(response.Body)
	if err = errors.Join(err, response.Body.Close()); err != nil {
		return fmt.Errorf("read the answer to POST: %w", err)
	}
	if response.StatusCode != http.StatusCreated {
		return fmt.Errorf("POST a network: %s %s", response.Status, bytes.TrimSpace(answer))
	}
	return nil
}
