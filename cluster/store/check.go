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
)

// checkFiles finds out before etcd starts what etcd would die or wait for ever
// of.
func checkFiles(c Config) error {
	if free, ok := c.tuning.free(c.Dir); ok && c.MinFree > 0 && free < segment {
		if _, err := os.Stat(filepath.Join(engineDir(c), "member", "wal")); errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("%w: the disk has %d MiB left, the store's log alone needs %d MiB", ErrNoSpace, free>>20, segment>>20)
		}
	}
	path := filepath.Join(engineDir(c), "member", "snap", "db")
	if st, err := os.Stat(path); err != nil || st.Size() == 0 {
		return nil
	}
	return checkDatabase(path)
}

// checkDatabase opens the file and walks through its trees. A page that makes no
// sense is a panic in bolt; in etcd's own goroutines it would end the process
// without saying which directory it is about.
func checkDatabase(path string) (err error) {
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
		return fmt.Errorf("%w: %q is locked", ErrLocked, path)
	case errors.Is(err, os.ErrPermission):
		return err
	case err != nil:
		return fmt.Errorf("%w: open %q: %w", ErrDamaged, path, err)
	}
	walk := db.View(func(tx *bolt.Tx) error {
		return tx.ForEach(func(_ []byte, b *bolt.Bucket) error {
			return b.ForEach(func(_, _ []byte) error { return nil })
		})
	})
	if walk != nil {
		walk = fmt.Errorf("%w: read %q: %w", ErrDamaged, path, walk)
	}
	return errors.Join(walk, db.Close())
}
