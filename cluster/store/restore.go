package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/etcd/etcdutl/v3/snapshot"
)

// RestoreConfig says what is to become of a backup.
type RestoreConfig struct {
	// Dir is the data directory. There must be no store in it.
	Dir string
	// Name is this server's name. Default "kvnet".
	Name string
	// Members are the members of the new cluster, as in Cluster. Each of them
	// restores the same backup into its own directory, with the same ClusterID.
	// Empty: one member, with the address that it is started with.
	Members map[string]string
	// ClusterID is the id of the new cluster. It may be empty for one member:
	// then it is made.
	ClusterID string
	// TLS says that the members will speak TLS to each other.
	TLS bool
	// Logger gets what goes wrong. Default slog.Default().
	Logger *slog.Logger
}

// ErrNotEmpty says that there is a store already where one was to be restored.
var ErrNotEmpty = errors.New("the directory has a store in it already")

// Restored tells what became of a backup or a recovered directory.
type Restored struct {
	// ClusterID and Epoch are the new ones.
	ClusterID string
	Epoch     uint32
	// Backup is what the backup says about itself.
	Backup BackupInfo
}

// Restore makes the store of a new cluster of a backup: with another id, so that
// no member of the old one is listened to, and a later epoch, so that switches
// obey. Nothing is in the directory unless it has succeeded.
func Restore(ctx context.Context, r io.Reader, c RestoreConfig) (Restored, error) {
	out, err := restoreBackup(ctx, r, c)
	if err != nil {
		return Restored{}, fmt.Errorf("restore a backup into %q: %w", c.Dir, err)
	}
	return out, nil
}

func restoreBackup(ctx context.Context, r io.Reader, c RestoreConfig) (out Restored, err error) {
	c.Name = cmp.Or(c.Name, "kvnet")
	if len(c.Members) > 1 && c.ClusterID == "" {
		return out, errors.New("members that are restored together need one cluster id")
	}
	if c.ClusterID == "" {
		if c.ClusterID, err = NewClusterID(); err != nil {
			return out, err
		}
	}
	plan := Cluster{ID: c.ClusterID, Members: c.Members}
	if err := plan.check(c.Name); err != nil {
		return out, err
	}
	lock := filepath.Join(c.Dir, lockFile)
	locked := exists(lock)
	made := !exists(c.Dir)
	unlock, err := openDir(c.Dir)
	if err != nil {
		return out, err
	}
	defer func() {
		if err != nil && !locked {
			_ = os.Remove(lock)
		}
		if err != nil && made {
			_ = os.Remove(c.Dir) // it stays if something is in it
		}
		err = errors.Join(err, unlock())
	}()
	if exists(filepath.Join(c.Dir, "etcd")) || exists(filepath.Join(c.Dir, identityFile)) {
		return out, ErrNotEmpty
	}
	path, err := stage(c.Dir)
	if err != nil {
		return out, err
	}
	file := filepath.Join(path, "snapshot")
	if out.Backup, err = receiveBackup(&reader{ctx, r}, file); err != nil {
		return out, errors.Join(err, os.RemoveAll(path))
	}
	id := newIdentity(c.Name, plan, out.Backup)
	if err := unpack(file, path, c, id); err != nil {
		return out, errors.Join(err, os.RemoveAll(path))
	}
	out.ClusterID, out.Epoch = id.Cluster.ID, id.Epoch
	return out, commitStage(c.Dir, id)
}

// newIdentity is that of the cluster that is made of the one of info.
func newIdentity(name string, plan Cluster, info BackupInfo) Identity {
	return Identity{
		Name: name, Cluster: plan, Previous: info.ClusterID,
		Epoch: nextEpoch(info.Epoch, time.Now()),
	}
}

// unpack makes a directory of etcd in path out of a snapshot.
func unpack(file, path string, c RestoreConfig, id Identity) (err error) {
	scheme := "http"
	if c.TLS {
		scheme = "https"
	}
	members := c.Members
	if len(members) == 0 {
		// It tells its real address when it starts.
		members = map[string]string{c.Name: "127.0.0.1:2380"}
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	defer func() {
		if p := recover(); p != nil { // how etcd tells of some damages
			err = fmt.Errorf("%w: %v", ErrBadBackup, p)
		}
	}()
	err = snapshot.NewV3(engineLog(c.Logger, nil, nil)).Restore(snapshot.RestoreConfig{
		SnapshotPath:        file,
		Name:                engineName(c.Name),
		OutputDataDir:       filepath.Join(path, "etcd"),
		PeerURLs:            []string{scheme + "://" + members[c.Name]},
		InitialCluster:      initialCluster(scheme, members),
		InitialClusterToken: id.Cluster.ID,
	})
	if err != nil {
		return fmt.Errorf("unpack the snapshot: %w", err)
	}
	return os.Remove(file)
}

// openDir makes a data directory, if it doesn't exist, and this process its only
// user.
func openDir(dir string) (unlock func() error, err error) {
	if dir == "" {
		return nil, errors.New("a directory for the data is needed")
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the data directory: %w", err)
	}
	lock, err := lockDir(dir)
	if err != nil {
		return nil, err
	}
	if err := install(dir); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return lock.Close, nil
}

// reader ends with its context.
type reader struct {
	ctx context.Context
	r   io.Reader
}

// Read implements io.Reader.
func (r *reader) Read(p []byte) (int, error) {
	if r.ctx.Err() != nil {
		return 0, context.Cause(r.ctx)
	}
	return r.r.Read(p)
}
