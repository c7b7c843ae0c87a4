package faults

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"kvnet/integration/cluster"
	"kvnet/integration/server"
)

// The leader's machine is given up, and a new one of another name takes its place.
func swapMember(f *field) error {
	if err := f.leader.Stop(); err != nil {
		return err
	}
	next, err := f.newLeader()
	if err != nil {
		return err
	}
	if err := next.Write(f.ctx, http.MethodDelete, "/kvnet/v1/cluster/members/"+f.leader.Name, nil); err != nil {
		return err
	}
	if err := f.Remove(f.ctx, f.leader); err != nil {
		return err
	}
	began := time.Now()
	m, err := f.Add(f.ctx, cluster.Addition{Name: "s4"})
	if err != nil {
		return err
	}
	if err := f.restart(m); err != nil {
		return err
	}
	f.note("s4 ready after %s", time.Since(began).Round(time.Millisecond))
	return nil
}

// All servers lose their data, and a cluster is made of a backup: it has what the
// backup has, the switches obey it, and packets pass all the time.
func restoreBackup(f *field) (err error) {
	if f.World, err = started(f.ctx, servers, false); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if f.leader, err = f.WaitLeader(f.ctx, soon); err != nil {
		return err
	}
	before, err := f.Record(f.ctx, f.leader)
	if err != nil {
		return err
	}
	traffic, err := f.StartTraffic(f.ctx)
	if err != nil {
		return err
	}
	f.mark = f.Mark()
	err = f.restore()
	loss := traffic.Stop()
	f.note("%d packets lost", loss.Lost)
	if err = errors.Join(err, loss.None()); err != nil {
		return err
	}
	for _, m := range f.Members {
		if err := before.CompareObjects(f.ctx, m); err != nil {
			return err
		}
	}
	after, err := f.Record(f.ctx, f.leader)
	if err != nil {
		return err
	}
	if differ := before.Differences(after); len(differ) > 0 {
		return fmt.Errorf("the rules differ: %q", differ)
	}
	return f.ProveWork(f.ctx)
}

func (f *field) restore() error {
	file := filepath.Join(f.Dir, "backup")
	status, backup, err := f.leader.Do(f.ctx, http.MethodPost, "/kvnet/v1/cluster/backup", nil)
	if err != nil || status != http.StatusOK {
		return fmt.Errorf("back up: %d %w", status, err)
	}
	if err := os.WriteFile(file, backup, 0o600); err != nil {
		return fmt.Errorf("keep the backup: %w", err)
	}
	// This is younger than the backup, and lost with the data.
	if err := f.leader.Write(f.ctx, http.MethodPost, server.NetworkingPath+"/network", cluster.NetworkBody("later", "10.97.0")); err != nil {
		return err
	}
	if err := f.WaitQuiet(f.ctx); err != nil {
		return err
	}
	for _, m := range f.Members {
		if err := errors.Join(m.Kill(), os.RemoveAll(m.DataDir())); err != nil {
			return err
		}
	}
	first := f.Members[0]
	out, err := exec.CommandContext(f.ctx, f.Binary, "cluster", "restore", file, "--data-dir", first.DataDir(), "--name", first.Name).CombinedOutput()
	if err != nil {
		return fmt.Errorf("restore: %w: %s", err, out)
	}
	for _, m := range f.Members {
		if err := f.restart(m); err != nil {
			return err
		}
	}
	return f.recover(f.ctx)
}
