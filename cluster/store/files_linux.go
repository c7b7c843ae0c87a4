package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// lockDir makes this process the only user of the directory, until the file is
// closed or the process ends in whatever way.
func lockDir(dir string) (*os.File, error) {
	path := filepath.Join(dir, lockFile)
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the data directory: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		defer f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			by := ""
			if pid, err := os.ReadFile(path); err == nil && len(pid) > 0 {
				by = " (process " + strings.TrimSpace(string(pid)) + ")"
			}
			return nil, fmt.Errorf("%w%s", ErrLocked, by)
		}
		return nil, fmt.Errorf("lock the data directory: %w", err)
	}
	// The number is a hint for people; the lock itself doesn't depend on it.
	if err := f.Truncate(0); err == nil {
		_, err = fmt.Fprintln(f, os.Getpid())
		if err != nil && !errors.Is(err, syscall.ENOSPC) {
			return nil, errors.Join(fmt.Errorf("lock the data directory: %w", err), f.Close())
		}
	}
	return f, nil
}

// freeBytes is the space that the disk of dir has left for us.
func freeBytes(dir string) (int64, bool) {
	var st syscall.Statfs_t
	if err := syscall.Statfs(dir, &st); err != nil {
		return 0, false
	}
	return int64(st.Bavail) * st.Bsize, true
}
