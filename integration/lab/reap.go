package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"kvnet/integration/netns"
)

// prefix begins the names of everything that a lab makes on the machine.
const prefix = "kvl-"

// processID names a process for good: its number and the time of its start, as a
// number alone is given again.
func processID(pid int) (string, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", fmt.Errorf("read process %d: %w", pid, err)
	}
	// The second field, the command in brackets, may hold anything; after it
	// the start time is the 20th (proc(5), field 22).
	_, rest, ok := strings.Cut(string(stat[strings.LastIndexByte(string(stat), ')')+1:]), " ")
	fields := strings.Fields(rest)
	if !ok || len(fields) < 20 {
		return "", fmt.Errorf("read process %d: unexpected %q", pid, stat)
	}
	start, err := strconv.ParseUint(fields[19], 10, 64)
	if err != nil {
		return "", fmt.Errorf("read process %d: %w", pid, err)
	}
	return fmt.Sprintf("%d-%x", pid, start), nil
}

// reap removes the namespaces and folders of labs whose process is dead. Their
// switches died with it.
func reap() error {
	names, err := netns.Names(prefix)
	if err != nil {
		return err
	}
	var errs []error
	for _, name := range names {
		if !orphan(name) {
			continue
		}
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		// Another process may reap the same ones at the same time.
		if err := netns.IP(ctx, "netns", "delete", name); err != nil && exists(name) {
			errs = append(errs, err)
		}
		cancel()
	}
	dirs, err := filepath.Glob(filepath.Join(os.TempDir(), prefix+"*"))
	if err != nil {
		return fmt.Errorf("list folders of labs: %w", err)
	}
	for _, dir := range dirs {
		if orphan(filepath.Base(dir)) {
			errs = append(errs, unmount(dir), os.RemoveAll(dir))
		}
	}
	return errors.Join(errs...)
}

// unmount takes away what is mounted below a folder.
func unmount(dir string) error {
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return fmt.Errorf("list mounts: %w", err)
	}
	var errs []error
	for line := range strings.Lines(string(mounts)) {
		fields := strings.Fields(line)
		if len(fields) < 2 || !strings.HasPrefix(fields[1], dir+"/") {
			continue
		}
		// Another process may reap the same ones at the same time.
		if err := unix.Unmount(fields[1], unix.MNT_DETACH); err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOENT) {
			errs = append(errs, fmt.Errorf("unmount %s: %w", fields[1], err))
		}
	}
	return errors.Join(errs...)
}

func exists(namespace string) bool {
	names, err := netns.Names(namespace)
	return err == nil && len(names) > 0
}

// orphan tells whether name was made by a process that is dead.
func orphan(name string) bool {
	parts := strings.SplitN(strings.TrimPrefix(name, prefix), "-", 3)
	if len(parts) < 3 {
		return false
	}
	pid, err := strconv.Atoi(parts[0])
	if err != nil {
		return false
	}
	id, err := processID(pid)
	return err != nil || id != parts[0]+"-"+parts[1]
}
