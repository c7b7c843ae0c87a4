package bench

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"kvnet/integration/server"
)

// measureStart starts servers and bare engines, in turn, on empty folders and then
// again on what they have left. It also looks at the resident memory of a server
// that has nothing to do.
func (b *Bench) measureStart(ctx context.Context) (fs []figure, err error) {
	dir, err := os.MkdirTemp("", "kvnet-bench-")
	if err != nil {
		return nil, fmt.Errorf("make a folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	var first, again, bareFirst, bareAgain times
	var idle float64
	for n := range rounds {
		bareDir := filepath.Join(dir, fmt.Sprintf("bare-%d", n))
		for _, t := range []*times{&bareFirst, &bareAgain} {
			began := time.Now()
			engine, err := startBare(ctx, bareDir)
			if err != nil {
				return nil, err
			}
			*t = append(*t, time.Since(began))
			engine.close()
		}
		s, err := server.New(server.Config{Binary: b.Binary, Dir: filepath.Join(dir, fmt.Sprintf("server-%d", n)), Name: "bench"})
		if err != nil {
			return nil, err
		}
		for _, t := range []*times{&first, &again} {
			took, err := startToFirst200(ctx, s)
			if err != nil {
				return nil, errors.Join(err, s.Kill())
			}
			*t = append(*t, took)
			if rss, ok, err := s.Metric(ctx, "process_resident_memory_bytes"); err != nil || !ok {
				return nil, errors.Join(errors.New("the server does not tell its resident memory"), err, s.Kill())
			} else if t == &first {
				idle = max(idle, rss)
			}
			if err := errors.Join(s.Stop(), s.CheckLog()); err != nil {
				return nil, err
			}
		}
	}
	return []figure{
		{part: "d", ratio: fmt.Sprintf("start to first 200 takes %.2f times the bare engine's own start (again on the same data: %.2f times)",
			over(first.median(), bareFirst.median()), over(again.median(), bareAgain.median())),
			details: []string{
				fmt.Sprintf("kvnet, process start to GET network = 200: median %s (%s); again: %s (%s)", short(first.median()), first.list(), short(again.median()), again.list()),
				fmt.Sprintf("bare engine, start to ready, in process: median %s (%s); again: %s (%s)", short(bareFirst.median()), bareFirst.list(), short(bareAgain.median()), bareAgain.list()),
			}},
		{part: "e", ratio: fmt.Sprintf("resident memory idle: %.0f MiB, right after the start", idle/(1<<20)),
			details: []string{fmt.Sprintf("the largest of %d servers without data", rounds)}},
	}, nil
}

// startToFirst200 starts a server and asks for its networks until they come.
func startToFirst200(ctx context.Context, s *server.Server) (time.Duration, error) {
	began := time.Now()
	started := make(chan error, 1)
	go func() { started <- s.Start(ctx) }()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		status, _, err := s.Do(ctx, http.MethodGet, server.NetworkingPath+"/network", nil)
		if err == nil && status == http.StatusOK {
			took := time.Since(began)
			return took, <-started
		}
		if time.Since(began) > 30*time.Second {
			return 0, errors.Join(errors.New("the server did not answer 200 in time"), <-started)
		}
		<-tick.C
	}
}
