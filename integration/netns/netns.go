package netns

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// runDir is where iproute2 keeps named namespaces.
const runDir = "/run/netns"

// NS is a named network namespace.
type NS struct{ Name string }

// Create makes the namespace and brings its loopback up.
func Create(ctx context.Context, name string) (*NS, error) {
	if err := IP(ctx, "netns", "add", name); err != nil {
		return nil, fmt.Errorf("create namespace %s: %w", name, err)
	}
	n := &NS{name}
	if err := n.IP(ctx, "link", "set", "lo", "up"); err != nil {
		return nil, errors.Join(err, n.Delete())
	}
	return n, nil
}

// Delete removes the namespace with all its interfaces.
func (n *NS) Delete() error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return IP(ctx, "netns", "delete", n.Name)
}

// IP runs ip(8) on the namespace.
func (n *NS) IP(ctx context.Context, args ...string) error {
	return IP(ctx, append([]string{"-n", n.Name}, args...)...)
}

// Command is a command that runs in the namespace.
func (n *NS) Command(ctx context.Context, name string, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, "ip", append([]string{"netns", "exec", n.Name, name}, args...)...)
}

// IP runs ip(8) on the machine's own namespace.
func IP(ctx context.Context, args ...string) error {
	out, err := exec.CommandContext(ctx, "ip", args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("ip %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}

// Do runs f on a thread that is in the namespace. Sockets that f makes stay in
// the namespace; goroutines that f starts do not.
func (n *NS) Do(f func() error) error {
	target, err := unix.Open(filepath.Join(runDir, n.Name), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open namespace %s: %w", n.Name, err)
	}
	defer func() { _ = unix.Close(target) }()

	result := make(chan error, 1)
	go func() {
		// The goroutine ends without unlocking when it can't go back, and the
		// runtime throws the thread away with it.
		runtime.LockOSThread()
		home, err := unix.Open("/proc/thread-self/ns/net", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			result <- fmt.Errorf("open own namespace: %w", err)
			return
		}
		defer func() { _ = unix.Close(home) }()
		if err := unix.Setns(target, unix.CLONE_NEWNET); err != nil {
			runtime.UnlockOSThread()
			result <- fmt.Errorf("enter namespace %s: %w", n.Name, err)
			return
		}
		err = f()
		if back := unix.Setns(home, unix.CLONE_NEWNET); back != nil {
			result <- errors.Join(err, fmt.Errorf("leave namespace %s: %w", n.Name, back))
			return
		}
		runtime.UnlockOSThread()
		result <- err
	}()
	return <-result
}

// Names lists the named namespaces of this machine that begin with prefix.
func Names(prefix string) ([]string, error) {
	entries, err := os.ReadDir(runDir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list namespaces: %w", err)
	}
	var names []string
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), prefix) {
			names = append(names, e.Name())
		}
	}
	return names, nil
}
