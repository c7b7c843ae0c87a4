package freeport

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

const (
	// lowest is the first port that Address gives, above those of well-known services.
	lowest = 15000
	// ephemeral is the file with the range of ports that the kernel gives to
	// connections and to listeners without a port of their own.
	ephemeral = "/proc/sys/net/ipv4/ip_local_port_range"
	// attempts bounds the search.
	attempts = 1000
)

// Address is an address on loopback, with its port, that is free in TCP and UDP.
//
// A port that the kernel chose and that was closed again may belong to somebody
// else before the test listens there: the kernel gives it to any connection. So
// the port is one that the kernel never chooses, and no other process that asks
// here gets it while this one lives.
func Address() (string, error) {
	highest, err := firstEphemeral()
	if err != nil {
		return "", err
	}
	for range attempts {
		port := lowest + rand.IntN(highest-lowest)
		switch claimed, err := claim(port); {
		case err != nil:
			return "", err
		case claimed && unused(port):
			return at(port), nil
		}
	}
	return "", fmt.Errorf("choose an address: no free port in %d attempts from %d to %d", attempts, lowest, highest-1)
}

func at(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// firstEphemeral is the first port that the kernel gives by itself.
func firstEphemeral() (int, error) {
	text, err := os.ReadFile(ephemeral)
	if err != nil {
		return 0, fmt.Errorf("read the kernel's range of ports: %w", err)
	}
	first, _, _ := strings.Cut(strings.TrimSpace(string(text)), "\t")
	port, err := strconv.Atoi(first)
	if err != nil {
		return 0, fmt.Errorf("read the kernel's range of ports in %s: %w", ephemeral, err)
	}
	if port <= lowest {
		return 0, fmt.Errorf("choose an address: the kernel's range of ports starts at %d, none above %d is left", port, lowest)
	}
	return port, nil
}

// claim takes the port among the processes that ask here, until this process ends:
// the lock is the kernel's and ends with it, and children don't inherit it.
func claim(port int) (bool, error) {
	dir := filepath.Join(os.TempDir(), "kvnet-test-ports")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return false, fmt.Errorf("claim port %d: %w", port, err)
	}
	fd, err := syscall.Open(filepath.Join(dir, strconv.Itoa(port)), syscall.O_CREAT|syscall.O_RDWR|syscall.O_CLOEXEC, 0o600)
	if err != nil {
		return false, fmt.Errorf("claim port %d: %w", port, err)
	}
	if err := syscall.Flock(fd, syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = syscall.Close(fd)
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return false, nil
		}
		return false, fmt.Errorf("claim port %d: %w", port, err)
	}
	return true, nil
}

// unused tells whether nobody listens at the port.
func unused(port int) bool {
	tcp, err := net.Listen("tcp", at(port))
	if err != nil {
		return false
	}
	defer func() { _ = tcp.Close() }()
	udp, err := net.ListenPacket("udp", at(port))
	if err != nil {
		return false
	}
	_ = udp.Close()
	return true
}
