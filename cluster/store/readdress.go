package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	bolt "go.etcd.io/bbolt"
	"go.etcd.io/etcd/server/v3/etcdserver/api/membership"
)

// readdress corrects, before etcd starts, where this server looks for the other
// members: at the addresses that Config.Cluster gives for them, and with TLS or
// without as they are configured now. etcd itself can only be told by a quorum,
// and there is none while nobody finds anybody. Each member tells the others its
// own address once they are in touch (announceAddress), and so makes the
// correction everybody's.
func readdress(c Config, members []membership.Member) error {
	if len(members) < 2 {
		return nil
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
		if now, ok := c.Cluster.Members[name]; ok {
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
