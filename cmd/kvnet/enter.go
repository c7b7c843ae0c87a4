package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"kvnet/cluster/gossip"
	"kvnet/cluster/store"
	"kvnet/internal/pause"
)

// foundingTimeout is how long a founder waits for the stores of the others: they
// may be started one after the other.
const foundingTimeout = 10 * time.Minute

// enter finds out which cluster this server belongs to, or founds or joins one,
// and opens the store.
func (s *server) enter(ctx context.Context, restAddr, openflowAddr net.Addr) error {
	if err := os.MkdirAll(s.c.dataDir, 0o700); err != nil {
		return fmt.Errorf("make the data directory: %w", err)
	}
	start := func(clusterID string, hasData bool) error {
		return s.startGossip(ctx, clusterID, hasData, restAddr.String(), openflowAddr.String())
	}
	if len(s.c.storeEndpoints) > 0 {
		return s.enterLate(ctx, start)
	}
	data := store.HasData(s.c.dataDir)
	switch id, err := store.ReadIdentity(s.c.dataDir); {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	case data && err == nil:
		if err := start(id.Cluster.ID, true); err != nil {
			return err
		}
		return s.open(ctx, store.Cluster{})
	case data || !s.c.clustered() && !s.promised():
		return s.enterLate(ctx, start)
	}
	if err := start("", false); err != nil {
		return err
	}
	plan, err := s.plan(ctx)
	if err != nil {
		return err
	}
	s.phase.set("the store of this server is waiting for those of the others")
	founding, cancel := context.WithTimeout(ctx, foundingTimeout)
	defer cancel()
	err = s.open(founding, plan)
	// A plan to join is out of date as soon as another server is taken in, and
	// then the engine doesn't begin. Asking again brings a new one.
	for range joinAttempts {
		if err == nil {
			break
		}
		if !plan.Joining || store.HasData(s.c.dataDir) || !pause.For(founding, time.Second/2) {
			return err
		}
		s.log.Info("the store could not join yet; asking for the members anew", "reason", err)
		if plan, err = s.join(founding, plan.ID); err == nil {
			err = s.open(founding, plan)
		}
	}
	if err != nil {
		return err
	}
	// The data says from now on which cluster it is. A promise that outlives the
	// data would let an empty server go on as one that has voted.
	if err := os.Remove(string(s.records())); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("forget the plan of the cluster: %w", err)
	}
	return nil
}

// joinAttempts bounds how often a server that is being taken in asks for the
// members anew.
const joinAttempts = 10

// enterLate opens the store first: it knows which cluster it is.
func (s *server) enterLate(ctx context.Context, start func(clusterID string, hasData bool) error) error {
	if err := s.open(ctx, store.Cluster{}); err != nil {
		return err
	}
	id, err := s.store.ClusterID(ctx)
	if err != nil {
		return err
	}
	return start(id, true)
}

// records is where this server keeps what it has promised while a cluster was
// being founded.
func (s *server) records() gossip.RecordFile {
	return gossip.RecordFile(filepath.Join(s.c.dataDir, "founding.json"))
}

// promised tells whether this server was about to found a cluster with others
// when it ended.
func (s *server) promised() bool {
	r, err := s.records().Load()
	return err != nil || r.Plan != nil
}

// plan founds a cluster with others, or finds one and has it take this server in.
func (s *server) plan(ctx context.Context) (store.Cluster, error) {
	s.phase.set("")
	g := s.gossip.Load()
	expect := s.c.bootstrapExpect
	if expect == 1 {
		expect = 0
	}
	plan, err := g.Form(ctx, gossip.FormConfig{
		Expect: expect, Self: gossip.StoreMember{Name: s.c.name, PeerURL: s.peerURL()}, Records: s.records(),
	})
	switch {
	case err != nil:
		return store.Cluster{}, err
	case plan.Joining:
		return s.join(ctx, plan.ClusterID)
	}
	members := map[string]string{}
	for _, m := range plan.Members {
		u, err := url.Parse(m.PeerURL)
		if err != nil {
			return store.Cluster{}, fmt.Errorf("the plan of the cluster: the address of server %q: %w", m.Name, err)
		}
		members[m.Name] = u.Host
	}
	return store.Cluster{ID: plan.ClusterID, Members: members}, nil
}

// joinTimeout bounds one request to be taken in. The members have to be in touch
// with each other for 5 s before they take somebody in.
const joinTimeout = 20 * time.Second

// join asks members of the cluster, one after the other, to take this server in.
func (s *server) join(ctx context.Context, cluster string) (store.Cluster, error) {
	g := s.gossip.Load()
	payload, err := json.Marshal(joinRequest{Address: s.peerAddress()})
	if err != nil {
		return store.Cluster{}, err
	}
	s.phase.set("the cluster is taking this server in")
	var said string
	for {
		for _, m := range g.Members() {
			if m.Name == s.c.name || m.State != gossip.Alive || m.Meta.ClusterID != cluster {
				continue
			}
			plan, err := s.askToJoin(ctx, m.Name, cluster, payload)
			if err == nil {
				s.log.Info("the cluster takes this server in", "cluster", cluster, "member", m.Name)
				return plan, nil
			}
			if ctx.Err() != nil {
				return store.Cluster{}, context.Cause(ctx)
			}
			if text := err.Error(); text != said {
				said = text
				s.log.Warn("this server could not join the cluster yet; trying again", "error", err)
				s.phase.set("the cluster has not taken this server in yet: " + text)
			}
		}
		if !pause.For(ctx, time.Second) {
			return store.Cluster{}, context.Cause(ctx)
		}
	}
}

func (s *server) askToJoin(ctx context.Context, member, cluster string, payload []byte) (store.Cluster, error) {
	ctx, cancel := context.WithTimeout(ctx, joinTimeout)
	defer cancel()
	b, err := s.gossip.Load().Call(ctx, member, joinKind, payload)
	if err != nil {
		return store.Cluster{}, err
	}
	var plan store.Cluster
	if err := json.Unmarshal(b, &plan); err != nil {
		return store.Cluster{}, fmt.Errorf("%s: read the answer of member %q: %w", joinKind, member, err)
	}
	if plan.ID != cluster || !plan.Joining {
		return store.Cluster{}, fmt.Errorf("%s: member %q answered with a plan for the cluster %q", joinKind, member, plan.ID)
	}
	return plan, nil
}

// open opens the store.
func (s *server) open(ctx context.Context, plan store.Cluster) error {
	c := s.c
	var host string
	if g := s.gossip.Load(); g != nil {
		host, _, _ = net.SplitHostPort(g.Address())
	}
	sc := store.Config{
		Name: c.name, Dir: c.dataDir, Listen: c.storeListen, Endpoints: c.storeEndpoints, Logger: s.log,
		Observer: s.storeStats, Advertise: c.storeAdvertise(host), Cluster: plan, Locate: s.locate,
		PeerCertFile: c.storePeerCert, PeerKeyFile: c.storePeerKey, PeerCAFile: c.storePeerCA,
	}
	if key, err := s.gossipKey(); err != nil {
		return err
	} else if len(key) > 0 && c.storePeerCert == "" && len(c.storeEndpoints) == 0 {
		own, _, _ := net.SplitHostPort(s.peerAddress())
		files, err := peerTLSFromKey(c.dataDir, key, own)
		if err != nil {
			return err
		}
		sc.PeerCertFile, sc.PeerKeyFile, sc.PeerCAFile = files.cert, files.key, files.ca
	}
	st, err := store.Open(ctx, sc, s.db)
	if err != nil {
		return err
	}
	s.store = st
	s.opened.Store(st)
	return nil
}

// leave closes what enter opened.
func (s *server) leave() error {
	var errs []error
	if g := s.gossip.Load(); g != nil {
		errs = append(errs, g.Close(context.Background()))
	}
	if st := s.opened.Load(); st != nil {
		errs = append(errs, st.Close())
	}
	return errors.Join(errs...)
}

// waiting says why this server can't serve clients yet.
func (s *server) waiting() string {
	if s.opened.Load() != nil {
		return "this server has not read yet what is stored"
	}
	if why := s.phase.get(); why != "" {
		return why
	}
	var here []string
	if g := s.gossip.Load(); g != nil {
		for _, m := range g.Members() {
			if m.State == gossip.Alive {
				here = append(here, m.Name)
			}
		}
	}
	slices.Sort(here)
	expect := s.c.bootstrapExpect
	switch missing := expect - len(here); {
	case expect < 2:
		return "this server is waiting for a cluster that it can join: no member of one answers at the addresses of --join"
	case missing == 1:
		return fmt.Sprintf("this server is waiting for 1 more server to found a cluster of %d; here are: %s", expect, strings.Join(here, ", "))
	case missing > 1:
		return fmt.Sprintf("this server is waiting for %d more servers to found a cluster of %d; here are: %s", missing, expect, strings.Join(here, ", "))
	}
	return fmt.Sprintf("the servers %s are about to agree on a cluster of %d; if that takes long, the log says why", strings.Join(here, ", "), expect)
}
