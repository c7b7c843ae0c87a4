package cluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// diskSize is enough for a server's log, which is allocated in pieces of 64 MiB.
const diskSize = "512m"

// mountDisk makes a small disk in memory at dir, until the lab is closed.
func (c *Cluster) mountDisk(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make a folder for a disk: %w", err)
	}
	if err := unix.Mount("none", dir, "tmpfs", 0, "size="+diskSize); err != nil {
		return fmt.Errorf("mount a disk at %s: %w", dir, err)
	}
	c.OnClose(func() error {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			return fmt.Errorf("unmount the disk at %s: %w", dir, err)
		}
		return nil
	})
	return nil
}

// Fill writes a file to the disk that a folder is on until nothing more goes in.
func Fill(dir string) (free func() error, err error) {
	name := filepath.Join(dir, "ballast")
	f, err := os.Create(name)
	if err != nil {
		return nil, fmt.Errorf("fill the disk of %s: %w", dir, err)
	}
	defer func() { _ = f.Close() }()
	block := make([]byte, 1<<20)
	for size := len(block); size > 0; {
		if _, err = f.Write(block[:size]); errors.Is(err, unix.ENOSPC) {
			size /= 2
		} else if err != nil {
			return nil, fmt.Errorf("fill the disk of %s: %w", dir, err)
		}
	}
	return func() error { return os.Remove(name) }, nil
}
