package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"kvnet/model/state"
)

// Recover makes a cluster of one out of what one member of a lost cluster has
// stored in c.Dir, with a new id and epoch. It is the last resort when most
// members are gone for good: writes that this member had not heard of are lost,
// and so may be the very last ones that it had. The other members can't come
// back: they have to be emptied and added anew. The old data is kept in the
// directory, as "etcd.replaced-…". Of c, the fields about the embedded engine
// count.
func Recover(ctx context.Context, c Config) (Restored, error) {
	c = c.withDefaults()
	ctx, cancel := deadline(ctx, c.OpenTimeout)
	defer cancel()
	out, err := recoverDir(ctx, c)
	if err != nil {
		return Restored{}, fmt.Errorf("make a cluster of one out of the data in %q: %w", c.Dir, err)
	}
	return out, nil
}

func recoverDir(ctx context.Context, c Config) (out Restored, err error) {
	if !HasData(c.Dir) {
		return out, errors.New("there is no data")
	}
	unlock, err := openDir(c.Dir)
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	path, err := stage(c.Dir)
	if err != nil {
		return out, err
	}
	defer func() {
		if err != nil && !exists(filepath.Join(path, "ready")) {
			err = errors.Join(err, os.RemoveAll(path))
		}
	}()
	// etcd makes a cluster of one in place: of a copy, so that nothing is lost
	// if it fails.
	old := filepath.Join(path, "old")
	if err := copyTree(ctx, filepath.Join(c.Dir, "etcd"), filepath.Join(old, "etcd")); err != nil {
		return out, fmt.Errorf("copy the data: %w", err)
	}
	file := filepath.Join(path, "snapshot")
	if out.Backup, err = backupAlone(ctx, c, old, file); err != nil {
		return out, err
	}
	if err := os.RemoveAll(old); err != nil {
		return out, err
	}
	id, err := NewClusterID()
	if err != nil {
		return out, err
	}
	// A restore of the snapshot, and not the directory itself, because only that
	// gives it other ids than the old members know: they must not take it for
	// one of theirs.
	raw := filepath.Join(path, "raw")
	f, err := os.Open(file)
	if err != nil {
		return out, err
	}
	_, err = receiveBackup(f, raw)
	if err = errors.Join(err, f.Close(), os.Remove(file)); err != nil {
		return out, err
	}
	identity := newIdentity(c.Name, Cluster{ID: id}, out.Backup)
	if err := unpack(raw, path, RestoreConfig{Name: c.Name, TLS: c.secure(), Logger: c.Logger}, identity); err != nil {
		return out, err
	}
	out.ClusterID, out.Epoch = id, identity.Epoch
	return out, commitStage(c.Dir, identity)
}

// backupAlone writes a backup of the data in dir to file, whether or not the
// other members are there.
func backupAlone(ctx context.Context, c Config, dir, file string) (info BackupInfo, err error) {
	alone := Config{
		Dir: dir, Name: c.Name, Listen: "127.0.0.1:0", MinFree: -1, Quota: c.Quota, Logger: c.Logger, tuning: c.tuning,
	}
	alone.tuning.forceNew = true
	s, err := Open(ctx, alone, state.New())
	if err != nil {
		return info, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	f, err := os.OpenFile(file, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return info, err
	}
	info, err = s.Backup(ctx, f)
	return info, errors.Join(err, f.Close())
}

// copyTree copies a directory of files.
func copyTree(ctx context.Context, from, to string) error {
	return filepath.WalkDir(from, func(path string, e fs.DirEntry, err error) error {
		if err != nil || ctx.Err() != nil {
			return errors.Join(err, context.Cause(ctx))
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		if e.IsDir() {
			return os.MkdirAll(filepath.Join(to, rel), 0o700)
		}
		return copyFile(path, filepath.Join(to, rel))
	})
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return errors.Join(err, in.Close())
	}
	_, err = out.ReadFrom(in)
	return errors.Join(err, out.Close(), in.Close())
}
