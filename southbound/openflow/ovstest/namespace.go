package ovstest

import (
	"errors"
	"fmt"
	"net"
	"runtime"

	"golang.org/x/sys/unix"
)

// Listen opens a listener on the loopback device of the switch's namespace, which
// is the only place that its bridges can connect to.
func (s *Switch) Listen() net.Listener {
	s.t.Helper()
	var ln net.Listener
	err := s.inNamespace(func() (err error) {
		ln, err = net.Listen("tcp", "127.0.0.1:0")
		return err
	})
	if err != nil {
		s.t.Fatalf("listen where the switch is: %v", err)
	}
	s.t.Cleanup(func() { ln.Close() })
	return ln
}

// inNamespace runs f on a thread that is in the switch's network namespace.
// Sockets that f makes stay there.
func (s *Switch) inNamespace(f func() error) error {
	result := make(chan error, 1)
	go func() {
		// The goroutine ends without unlocking if it can't go back, and the thread
		// ends with it.
		runtime.LockOSThread()
		home, err := enter("/proc/thread-self/ns/net", fmt.Sprintf("/proc/%d/ns/net", s.pid))
		if err != nil {
			runtime.UnlockOSThread()
			result <- err
			return
		}
		defer unix.Close(home)
		err = f()
		if back := unix.Setns(home, unix.CLONE_NEWNET); back != nil {
			result <- errors.Join(err, fmt.Errorf("leave the namespace: %w", back))
			return
		}
		runtime.UnlockOSThread()
		result <- err
	}()
	return <-result
}

// enter makes the thread enter a namespace and returns a descriptor of its own.
func enter(own, other string) (home int, err error) {
	home, err = unix.Open(own, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, fmt.Errorf("open %s: %w", own, err)
	}
	target, err := unix.Open(other, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		unix.Close(home)
		return 0, fmt.Errorf("open %s: %w", other, err)
	}
	defer unix.Close(target)
	if err := unix.Setns(target, unix.CLONE_NEWNET); err != nil {
		unix.Close(home)
		return 0, fmt.Errorf("enter %s: %w", other, err)
	}
	return home, nil
}

// loopbackUp brings up the loopback device of the thread's namespace.
func loopbackUp() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	lo.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo)
}
