package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"kvnet/integration/server"
)

const (
	restRounds = 15
	restRound  = 250 * time.Millisecond
)

const networksPath = server.NetworkingPath + "/network"

// restWorld is a real server, what it is compared with, and connections to them.
type restWorld struct {
	server  *server.Server
	trivial *trivial
	bare    *bare
	toREST  []*rawClient // one for each client
	toGin   []*rawClient
}

// measureREST measures reads (h, i) and creates (j) of networks.
func (b *Bench) measureREST(ctx context.Context, one, lists, creates bool) (fs []figure, err error) {
	dir, err := os.MkdirTemp("", "kvnet-bench-")
	if err != nil {
		return nil, fmt.Errorf("make a folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	w, err := b.newRESTWorld(ctx, dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.close()) }()

	// The lists grow from part to part.
	if err := w.grow(ctx, 0, 10); err != nil {
		return nil, err
	}
	if one {
		f, err := w.reads(ctx, "h", "GET of one network", networksPath+"/net-0", " (goal 0.7)")
		if err != nil {
			return fs, err
		}
		fs = append(fs, f)
	}
	if lists {
		f, err := w.reads(ctx, "i", "GET of a list of 10 networks", networksPath, "")
		if err != nil {
			return fs, err
		}
		fs = append(fs, f)
		if err := w.grow(ctx, 10, 1000); err != nil {
			return fs, err
		}
		if f, err = w.reads(ctx, "i", "GET of a list of 1000 networks", networksPath, ""); err != nil {
			return fs, err
		}
		fs = append(fs, f)
	}
	if creates {
		f, err := w.creates(ctx)
		if err != nil {
			return fs, err
		}
		fs = append(fs, f)
	}
	return fs, nil
}

func (b *Bench) newRESTWorld(ctx context.Context, dir string) (w *restWorld, err error) {
	w = &restWorld{}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.close())
		}
	}()
	s, err := server.New(server.Config{Binary: b.Binary, Dir: filepath.Join(dir, "server"), Name: "bench"})
	if err != nil {
		return w, err
	}
	if err := s.Start(ctx); err != nil {
		return w, err
	}
	w.server = s
	if w.trivial, err = b.startTrivial(ctx); err != nil {
		return w, err
	}
	if w.bare, err = startBare(ctx, filepath.Join(dir, "bare")); err != nil {
		return w, err
	}
	for range clients {
		r, err := dialRaw(s.REST)
		if err != nil {
			return w, err
		}
		w.toREST = append(w.toREST, r)
		if r, err = dialRaw(w.trivial.address); err != nil {
			return w, err
		}
		w.toGin = append(w.toGin, r)
	}
	return w, nil
}

// grow creates the networks from number from up to number to.
func (w *restWorld) grow(ctx context.Context, from, to int) error {
	for i := from; i < to; i++ {
		if err := w.server.Write(ctx, http.MethodPost, networksPath, network(fmt.Sprintf("net-%d", i), "192.168.10")); err != nil {
			return err
		}
	}
	return nil
}

// reads asks kvnet and the trivial server in turn.
func (w *restWorld) reads(ctx context.Context, part, what, path, goal string) (f figure, err error) {
	read, nothing := rawRequest(http.MethodGet, path, ""), rawRequest(http.MethodGet, trivialPath, "")
	var kvnet, gin rates
	for range restRounds {
		g, err := rate(ctx, func(c, _ int) error { return w.toGin[c].do(nothing, http.StatusOK) })
		if err != nil {
			return f, err
		}
		k, err := rate(ctx, func(c, _ int) error { return w.toREST[c].do(read, http.StatusOK) })
		if err != nil {
			return f, fmt.Errorf("%s: %w", what, err)
		}
		kvnet, gin = append(kvnet, k), append(gin, g)
	}
	return figure{part: part, ratio: fmt.Sprintf("%s: %.2f times as many a second as a trivial route of gin%s", what, kvnet.over(gin), goal),
		details: []string{
			fmt.Sprintf("kvnet, signed in, %d connections kept alive: %s", clients, kvnet.spread()),
			"gin, in a process of its own: " + gin.spread(),
		}}, nil
}

// creates has kvnet and the bare engine create in turn.
func (w *restWorld) creates(ctx context.Context) (f figure, err error) {
	var posts, writes rates
	for round := range restRounds {
		id := func(c, n int) string { return fmt.Sprintf("new-%d-%d-%d", round, c, n) }
		body := func(c, n int) string {
			encoded, _ := json.Marshal(network(id(c, n), "192.168.10")) // texts and numbers can't fail
			return string(encoded)
		}
		b, err := rate(ctx, func(c, n int) error { return w.bare.create(ctx, "/network/"+id(c, n), body(c, n)) })
		if err != nil {
			return f, err
		}
		p, err := rate(ctx, func(c, n int) error {
			return w.toREST[c].do(rawRequest(http.MethodPost, networksPath, body(c, n)), http.StatusCreated)
		})
		if err != nil {
			return f, fmt.Errorf("POST of a network: %w", err)
		}
		writes, posts = append(writes, b), append(posts, p)
	}
	return figure{part: "j", ratio: fmt.Sprintf("POST of a network: %.2f times as many a second as bare create-if-absent transactions, %d clients each (goal 0.4)", posts.over(writes), clients),
		details: []string{
			"kvnet: " + posts.spread(),
			"bare engine, in process: " + writes.spread(),
		}}, nil
}

func (w *restWorld) close() error {
	for _, c := range append(w.toREST, w.toGin...) {
		_ = c.conn.Close()
	}
	var errs []error
	if w.bare != nil {
		w.bare.close()
	}
	if w.trivial != nil {
		errs = append(errs, w.trivial.stop())
	}
	if w.server != nil {
		errs = append(errs, w.server.Stop(), w.server.CheckLog())
	}
	return errors.Join(errs...)
}
