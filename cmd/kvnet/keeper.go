package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"kvnet/cluster/store"
	"kvnet/northbound/rest"
)

// clusterKeeper changes the members and makes backups for a client of REST.
type clusterKeeper struct{ s *server }

// errExternal is about what only the store's own servers can do.
const errExternal = rest.ClusterRefusal("the store is an external etcd cluster, which has tools of its own for its members and for backups")

func (k clusterKeeper) RemoveMember(ctx context.Context, name string) error {
	st, err := lateStore(k).now()
	if err != nil {
		return err
	}
	members, err := st.Members(ctx)
	switch {
	case errors.Is(err, store.ErrNotEmbedded):
		return errExternal
	case err != nil:
		return err
	case !slices.ContainsFunc(members, func(m store.Member) bool { return m.Name == name }):
		return fmt.Errorf("remove member %q: %w", name, store.ErrNotFound)
	case name == k.s.c.name && len(members) == 1:
		return rest.ClusterRefusal("this server is the only member")
	case name == k.s.c.name:
		return rest.ClusterRefusal("a server can't remove itself: ask another one, or stop this one before")
	}
	if err := st.RemoveMember(ctx, name); err != nil {
		return err
	}
	k.s.log.Info("a server is no member of the cluster any more", "member", name)
	if g := k.s.gossip.Load(); g != nil {
		g.Forget(name)
	}
	return nil
}

func (k clusterKeeper) Backup(ctx context.Context, w io.Writer) error {
	st, err := lateStore(k).now()
	if err != nil {
		return err
	}
	_, err = st.Backup(ctx, w)
	if errors.Is(err, store.ErrNotEmbedded) {
		return errExternal
	}
	return err
}
