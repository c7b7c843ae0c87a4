package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"time"

	"kvnet/cluster/gossip"
	"kvnet/cluster/store"
	"kvnet/internal/pause"
)

// The kinds of requests between servers.
const (
	joinKind     = "cluster/join"
	promoteKind  = "cluster/promote"
	statusKind   = "cluster/status"
	takeOverKind = "cluster/take-over"
)

// joinRequest asks a member to take the sender in.
type joinRequest struct {
	// Address is where its store will be reached, host:port.
	Address string `json:"address"`
}

func (s *server) gossipKey() ([]byte, error) {
	if s.c.gossipKeyFile == "" {
		return nil, nil
	}
	return gossip.ReadKey(s.c.gossipKeyFile)
}

// warnOfOpenKey warns of a key that other accounts of the machine can read. Whoever
// has it can write everything that is stored.
func warnOfOpenKey(file string, log *slog.Logger) {
	if file == "" {
		return
	}
	if st, err := os.Stat(file); err == nil && st.Mode().Perm()&0o077 != 0 {
		log.Warn("other accounts of this machine can read the gossip key: take the right from them (chmod 600)", "file", file, "mode", st.Mode().Perm())
	}
}

// peerAddress is where other servers reach this one's store.
func (s *server) peerAddress() string {
	var host string
	if g := s.gossip.Load(); g != nil {
		host, _, _ = net.SplitHostPort(g.Address())
	}
	if a := s.c.storeAdvertise(host); a != "" {
		return a
	}
	return s.c.storeListen
}

// peerURL is peerAddress with the way to speak to it.
func (s *server) peerURL() string {
	if s.c.gossipKeyFile != "" || s.c.storePeerCert != "" {
		return "https://" + s.peerAddress()
	}
	return "http://" + s.peerAddress()
}

// startGossip begins to look for other servers. A server that was not told to do
// so listens all the same, so that others can join it later, but goes without if
// it can't.
func (s *server) startGossip(ctx context.Context, clusterID string, hasData bool, restAddr, openflowAddr string) error {
	key, err := s.gossipKey()
	if err != nil {
		return err
	}
	host, _, _ := net.SplitHostPort(s.c.gossipAdvertise())
	g, err := gossip.Start(ctx, gossip.Config{
		Name: s.c.name, Listen: s.c.gossipListen, Advertise: s.c.advertise, Join: s.c.join,
		Preset: gossip.Preset(s.c.gossipPreset), Key: key, ClusterID: clusterID,
		Meta: gossip.Meta{
			REST: reachable(restAddr, host), OpenFlow: reachable(openflowAddr, host), PeerURL: s.peerURL(),
			Version: version, HasData: hasData,
		},
		SeedFile: filepath.Join(s.c.dataDir, "gossip-seeds.json"), Logger: s.log, Observer: s.cluster,
	})
	if err != nil {
		if s.c.clustered() || s.c.gossipGiven {
			return fmt.Errorf("start the gossip on --gossip-listen %s: %w", s.c.gossipListen, err)
		}
		s.log.Warn("no gossip: other servers can't join this one", "listen", s.c.gossipListen, "error", err)
		return nil
	}
	g.Handle(joinKind, s.serveJoin)
	g.Handle(promoteKind, s.servePromote)
	g.Handle(statusKind, s.serveStatus)
	g.Handle(takeOverKind, s.serveTakeOver)
	s.gossip.Store(g)
	return g.UpdateMeta(func(m *gossip.Meta) { m.PeerURL = s.peerURL() })
}

var errNotOpen = errors.New("its store is not open yet")

// serveJoin takes a server without data into the cluster. A member of its name or
// address that has been in touch before has lost its data, for the gossip lets
// nobody in who has a living member's name or address: it is removed first. To
// let the newcomer go on under the old one's identity would lose writes that the
// old one had promised to keep.
func (s *server) serveJoin(ctx context.Context, from gossip.Member, payload []byte) ([]byte, error) {
	st := s.opened.Load()
	if st == nil {
		return nil, errNotOpen
	}
	var r joinRequest
	if err := json.Unmarshal(payload, &r); err != nil {
		return nil, fmt.Errorf("read the request: %w", err)
	}
	if from.Meta.HasData || from.Meta.ClusterID != "" {
		return nil, gossip.ErrHasData
	}
	members, err := st.Members(ctx)
	if err != nil {
		return nil, err
	}
	plan, err := func() (store.Cluster, error) {
		for _, m := range members {
			same := m.Name == from.Name && m.Address == r.Address
			if (m.Name == from.Name || m.Address == r.Address) && (m.Started || !same) {
				if m.Name != from.Name && s.alive(m.Name) {
					return store.Cluster{}, fmt.Errorf("the member %q, which is alive, has the address %s", m.Name, r.Address)
				}
				s.log.Warn("a member has lost its data and is replaced", "member", m.Name, "address", m.Address, "by", from.Name, "at", r.Address)
				return st.ReplaceMember(ctx, m, from.Name, r.Address)
			}
		}
		return st.AddLearner(ctx, from.Name, r.Address)
	}()
	if err != nil {
		return nil, err
	}
	s.log.Info("a server has been taken in; it has no vote yet", "member", from.Name, "address", r.Address)
	return json.Marshal(plan)
}

// servePromote gives the sender its vote once it has caught up.
func (s *server) servePromote(ctx context.Context, from gossip.Member, _ []byte) ([]byte, error) {
	st := s.opened.Load()
	if st == nil {
		return nil, errNotOpen
	}
	if err := st.Promote(ctx, from.Name); err != nil {
		return nil, err
	}
	s.log.Info("a server has a vote now", "member", from.Name)
	return nil, nil
}

// alive tells whether the gossip knows a living server of the name.
func (s *server) alive(name string) bool {
	g := s.gossip.Load()
	if g == nil {
		return false
	}
	for _, m := range g.Members() {
		if m.Name == name {
			return m.State == gossip.Alive
		}
	}
	return false
}

// promoteTimeout bounds one request for a vote.
const promoteTimeout = 15 * time.Second

// seekVote asks the members for a vote until this server has one, and only then
// tells the others that it is one of the cluster: who has no vote can't lead.
func (s *server) seekVote(ctx context.Context) {
	g := s.gossip.Load()
	var said string
	for s.learner() {
		for _, m := range g.Members() {
			if m.Name == s.c.name || m.State != gossip.Alive || m.Meta.ClusterID == "" || !s.learner() {
				continue
			}
			ask, cancel := context.WithTimeout(ctx, promoteTimeout)
			_, err := g.Call(ask, m.Name, promoteKind, nil)
			cancel()
			if err == nil {
				break
			}
			if err.Error() != said && ctx.Err() == nil {
				said = err.Error()
				s.log.Info("this server has no vote in the cluster yet", "reason", err)
			}
		}
		if !pause.For(ctx, 200*time.Millisecond) {
			return
		}
	}
	for id := ""; ; {
		var err error
		if id, err = s.store.ClusterID(ctx); err == nil {
			err = errors.Join(g.SetCluster(id), g.UpdateMeta(func(m *gossip.Meta) { m.HasData, m.Expect = true, 0 }))
		}
		if err == nil || ctx.Err() != nil {
			return
		}
		s.log.Warn("this server could not tell the others which cluster it belongs to; trying again", "error", err)
		if !pause.For(ctx, time.Second) {
			return
		}
	}
}

// learner tells whether this server's store has no vote yet.
func (s *server) learner() bool {
	st := s.opened.Load() // nil while it is opened anew
	if st == nil {
		return false
	}
	h, ok := st.Health()
	return ok && h.Learner
}
