package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	bolt "go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
	"go.etcd.io/etcd/server/v3/etcdserver/api/membership"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.uber.org/zap"
)

// checkFiles finds out before etcd starts what etcd would die or wait for ever
// of, and puts right what can be. It returns the members that the database knows.
func checkFiles(c Config, id Identity) ([]membership.Member, error) {
	if free, ok := c.tuning.free(c.Dir); ok && c.MinFree > 0 && free < segment {
		if _, err := os.Stat(filepath.Join(engineDir(c), "member", "wal")); errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("%w: the disk has %d MiB left, the store's log alone needs %d MiB", ErrNoSpace, free>>20, segment>>20)
		}
	}
	var members []membership.Member
	path := databasePath(c)
	if st, err := os.Stat(path); err == nil && st.Size() > 0 {
		if members, err = checkDatabase(path); err != nil {
			return nil, err
		}
	}
	// A member that joins may have acknowledged entries that it doesn't know to
	// be committed: it must keep them.
	if len(members) > 0 || id.Cluster.Joining || !neverCommitted(c) {
		return members, nil
	}
	// A kill at the wrong moment of the very first start. etcd would wait for
	// ever for a leader among no members.
	c.Logger.Info("the making of the store was interrupted; beginning again", "dir", c.Dir)
	if err := os.RemoveAll(engineDir(c)); err != nil {
		return nil, fmt.Errorf("remove the beginnings of a store: %w", err)
	}
	return nil, os.MkdirAll(engineDir(c), 0o700)
}

// databasePath is that of the engine's database.
func databasePath(c Config) string { return filepath.Join(engineDir(c), "member", "snap", "db") }

// membersBucket is the part of the database in which etcd keeps its members.
var membersBucket = []byte("members")

// neverCommitted tells whether etcd's log exists and says that nothing was ever
// committed, not even that this server is a member. A log that can't be read is
// none of these: etcd tells what is wrong with it.
func neverCommitted(c Config) (never bool) {
	dir := filepath.Join(engineDir(c), "member", "wal")
	if !wal.Exist(dir) {
		return false
	}
	defer func() {
		if recover() != nil { // how etcd tells of some damages
			never = false
		}
	}()
	state, err := wal.Verify(zap.NewNop(), dir, &walpb.Snapshot{})
	return err == nil && state.GetCommit() == 0
}

// checkDatabase opens the file and walks through its trees. A page that makes no
// sense is a panic in bolt; in etcd's own goroutines it would end the process
// without saying which directory it is about. It returns the members that etcd
// has noted.
func checkDatabase(path string) (members []membership.Member, err error) {
	// A page that the file doesn't have is a fault of the memory that it is
	// mapped to.
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: read %q: %v", ErrDamaged, path, p)
		}
	}()
	db, err := bolt.Open(path, 0o600, &bolt.Options{ReadOnly: true, Timeout: time.Second})
	switch {
	case errors.Is(err, berrors.ErrTimeout):
		return nil, fmt.Errorf("%w: %q is locked", ErrLocked, path)
	case errors.Is(err, os.ErrPermission):
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("%w: open %q: %w", ErrDamaged, path, err)
	}
	walk := db.View(func(tx *bolt.Tx) error {
		return tx.ForEach(func(name []byte, b *bolt.Bucket) error {
			return b.ForEach(func(_, value []byte) error {
				if !bytes.Equal(name, membersBucket) {
					return nil
				}
				var m membership.Member
				if err := json.Unmarshal(value, &m); err != nil {
					return fmt.Errorf("a member: %w", err)
				}
				members = append(members, m)
				return nil
			})
		})
	})
	if walk != nil {
		walk = fmt.Errorf("%w: read %q: %w", ErrDamaged, path, walk)
	}
	return members, errors.Join(walk, db.Close())
}
