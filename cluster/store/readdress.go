package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	bolt "go.etcd.io/bbolt"
	"go.etcd.io/etcd/server/v3/etcdserver/api/membership"
)

// readdress corrects, before etcd starts, where this server looks for the other
// members: at the addresses that Config.Locate gives for them, and with TLS or
// without as they are configured now. etcd itself can only be told by a quorum,
// and there is none while nobody finds anybody. Each member tells the others its
// own address once they are in touch (announceAddress), and so makes the
// correction everybody's.
func readdress(ctx context.Context, c Config, members []membership.Member) error {
	if len(members) < 2 {
		return nil
	}
	found, err := locate(ctx, c, members)
	if err != nil {
		return err
	}
	moved := map[string][]byte{}
	for _, m := range members {
		name := memberName(m.Name)
		if name == c.Name {
			continue
		}
		addr, err := addressOf(m.PeerURLs)
		if err != nil {
			return fmt.Errorf("member %q: %w", name, err)
		}
		if now, ok := found[name]; ok {
			addr = now
		}
		u, err := peerURL(c.scheme(), addr)
		if err != nil {
			return fmt.Errorf("the address of member %q: %w", name, err)
		}
		if slices.Equal(m.PeerURLs, []string{u.String()}) {
			continue
		}
		c.Logger.Info("another member has moved", "member", name, "to", u.Host, "before", m.PeerURLs)
		m.PeerURLs = []string{u.String()}
		value, err := json.Marshal(m)
		if err != nil {
			return fmt.Errorf("member %q: %w", name, err)
		}
		moved[m.ID.String()] = value
	}
	if len(moved) == 0 {
		return nil
	}
	if err := skipReplay(c); err != nil {
		// A log that can't be read: etcd tells what is wrong with it, or mends it.
		c.Logger.Warn("the other members may be looked for at earlier addresses for a while", "reason", err)
	}
	db, err := bolt.Open(databasePath(c), 0o600, &bolt.Options{Timeout: time.Second})
	if err != nil {
		return fmt.Errorf("note the new addresses of members: %w", err)
	}
	err = db.Update(func(tx *bolt.Tx) error {
		b := tx.Bucket(membersBucket)
		if b == nil {
			return fmt.Errorf("%w: there is no list of members", ErrDamaged)
		}
		for id, value := range moved {
			if err := b.Put([]byte(id), value); err != nil {
				return err
			}
		}
		return nil
	})
	if err = errors.Join(err, db.Close()); err != nil {
		return fmt.Errorf("note the new addresses of members: %w", err)
	}
	return nil
}

// locate asks where the members are.
func locate(ctx context.Context, c Config, members []membership.Member) (map[string]string, error) {
	if c.Locate == nil {
		return nil, nil
	}
	noted := map[string]string{}
	for _, m := range members {
		addr, err := addressOf(m.PeerURLs)
		if err != nil {
			return nil, fmt.Errorf("member %q: %w", memberName(m.Name), err)
		}
		noted[memberName(m.Name)] = addr
	}
	return c.Locate(ctx, noted), nil
}

// dialled are the addresses, with the names, at which this member looks for the
// others.
func (e *embedded) dialled() []string {
	var out []string
	for _, m := range e.etcd.Server.Cluster().Members() {
		if m.ID != e.etcd.Server.MemberID() {
			out = append(out, fmt.Sprintf("%s at %s", memberName(m.Name), strings.Join(m.PeerURLs, ", ")))
		}
	}
	slices.Sort(out)
	return out
}
