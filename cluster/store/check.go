package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	bolt "go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.uber.org/zap"
)

// checkFiles finds out before etcd starts what etcd would die or wait for ever
// of, and puts right what can be.
func checkFiles(c Config) error {
	if free, ok := c.tuning.free(c.Dir); ok && c.MinFree > 0 && free < segment {
		if _, err := os.Stat(filepath.Join(engineDir(c), "member", "wal")); errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("%w: the disk has %d MiB left, the store's log alone needs %d MiB", ErrNoSpace, free>>20, segment>>20)
		}
	}
	members := false
	path := filepath.Join(engineDir(c), "member", "snap", "db")
	if st, err := os.Stat(path); err == nil && st.Size() > 0 {
		if members, err = checkDatabase(path); err != nil {
			return err
		}
	}
	if members || !neverCommitted(c) {
		return nil
	}
	// A kill at the wrong moment of the very first start. etcd would wait for
	// ever for a leader among no members.
	c.Logger.Info("the making of the store was interrupted; beginning again", "dir", c.Dir)
	if err := os.RemoveAll(engineDir(c)); err != nil {
		return fmt.Errorf("remove the beginnings of a store: %w", err)
	}
	return os.MkdirAll(engineDir(c), 0o700)
}

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
// without saying which directory it is about. members tells whether etcd has
// noted that it is a member of something.
func checkDatabase(path string) (members bool, err error) {
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
		return false, fmt.Errorf("%w: %q is locked", ErrLocked, path)
	case errors.Is(err, os.ErrPermission):
		return false, err
	case err != nil:
		return false, fmt.Errorf("%w: open %q: %w", ErrDamaged, path, err)
	}
	walk := db.View(func(tx *bolt.Tx) error {
		return tx.ForEach(func(name []byte, b *bolt.Bucket) error {
			return b.ForEach(func(_, _ []byte) error {
				members = members || string(name) == "members"
				return nil
			})
		})
	})
	if walk != nil {
		walk = fmt.Errorf("%w: read %q: %w", ErrDamaged, path, walk)
	}
	return members, errors.Join(walk, db.Close())
}
