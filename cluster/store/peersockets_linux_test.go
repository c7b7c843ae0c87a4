package store

import (
	"net"
	"os"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

// silences are the bounds of all connections of the process that are between such
// ports, in milliseconds; 0: none.
func silences(t *testing.T, p ports) (out []int) {
	t.Helper()
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		fd, err := strconv.Atoi(f.Name())
		if err != nil {
			t.Fatal(err)
		}
		remote, err := unix.Getpeername(fd)
		if err != nil {
			continue
		}
		local, err := unix.Getsockname(fd)
		if err != nil || !p.of(portOf(local), portOf(remote)) {
			continue
		}
		n, err := unix.GetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT)
		if err == nil {
			out = append(out, n)
		}
	}
	return out
}

func bounded(all []int) bool {
	for _, n := range all {
		if n != int(peerSilence.Milliseconds()) {
			return false
		}
	}
	return len(all) > 0
}

func TestConnectionsBetweenMembersAreGivenUpWhenTheyHang(t *testing.T) {
	cs := planned(t, "a", "b", "c")
	fs := openAll(t, cs)
	for _, f := range fs {
		p := f.engine.peerPorts()
		if p.own <= 0 || len(p.others) != 2 {
			t.Fatalf("ports %+v", p)
		}
		until(t, "all connections are bounded", func() bool { return bounded(silences(t, p)) })
	}
}

func TestOtherConnectionsAreLeftAlone(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	conn, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	accepted, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer accepted.Close()
	these := ports{own: ln.Addr().(*net.TCPAddr).Port, others: map[int]bool{ln.Addr().(*net.TCPAddr).Port: true}}
	for _, p := range []ports{{own: these.own}, {own: -1, others: map[int]bool{1: true}}} {
		if err := boundSockets(p); err != nil {
			t.Fatal(err)
		}
		for _, n := range silences(t, these) {
			if n != 0 {
				t.Errorf("%+v: a connection of others is bounded to %d ms", p, n)
			}
		}
	}
	if err := boundSockets(these); err != nil {
		t.Fatal(err)
	}
	if all := silences(t, these); len(all) != 2 || !bounded(all) {
		t.Errorf("bounds %v on both sides", all)
	}
}
