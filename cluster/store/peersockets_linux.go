package store

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"kvnet/internal/pause"
)

const (
	// peerSilence is how long a connection between members may go without an
	// acknowledgement before it is given up. etcd means its connections to last
	// as long without a sign of life, but its transport doesn't hold to that.
	peerSilence = 5 * time.Second
	// peerProbe is after which silence, and how often, TCP asks the other side.
	peerProbe = time.Second
	// socketsEvery is how often new connections are looked for. Options count from
	// when they are set, also for a connection that hangs already.
	socketsEvery = time.Second
)

// boundSilence gives connections with other members up that hang, until ctx ends.
// TCP itself would go on for 15 minutes, and wait ever longer between attempts: a
// network that was cut in one direction and is whole again would stay useless for
// about as long as it was cut. etcd has no way to set options on its sockets, so
// they are found among all files of the process.
func (s *Store) boundSilence(ctx context.Context) {
	var said bool
	for pause.For(ctx, socketsEvery) {
		if err := boundSockets(s.engine.peerPorts()); err != nil && !said {
			said = true
			s.log.Warn("connections with the stores of other servers may hang for long after a failure of the network", "err", err)
		}
	}
}

// ports are those by which connections between members are recognised.
type ports struct {
	own    int
	others map[int]bool
}

// of tells whether a connection between these ports is one between members.
func (p ports) of(local, remote int) bool { return local == p.own || p.others[remote] }

func (e *embedded) peerPorts() ports {
	p := ports{own: -1, others: map[int]bool{}}
	if a, ok := e.etcd.Peers[0].Addr().(*net.TCPAddr); ok {
		p.own = a.Port
	}
	for _, m := range e.etcd.Server.Cluster().Members() {
		if m.ID == e.etcd.Server.MemberID() {
			continue
		}
		for _, u := range m.PeerURLs {
			if u, err := url.Parse(u); err == nil {
				if n, err := strconv.Atoi(u.Port()); err == nil {
					p.others[n] = true
				}
			}
		}
	}
	return p
}

// boundSockets sets the options on all connections of this process between such
// ports. A number of a file may come to stand for another one meanwhile: a
// connection that gets the options by mistake is none the worse for it.
func boundSockets(p ports) error {
	if len(p.others) == 0 {
		return nil
	}
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return fmt.Errorf("look for connections: %w", err)
	}
	var errs []error
	for _, f := range files {
		fd, err := strconv.Atoi(f.Name())
		if err != nil {
			continue
		}
		remote, err := unix.Getpeername(fd)
		if err != nil {
			continue // not a connection, or it has ended
		}
		local, err := unix.Getsockname(fd)
		if err != nil || !p.of(portOf(local), portOf(remote)) {
			continue
		}
		errs = append(errs, boundSocket(fd))
	}
	return errors.Join(errs...)
}

func boundSocket(fd int) error {
	for _, o := range []struct{ level, name, value int }{
		{unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1},
		{unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, int(peerProbe.Seconds())},
		{unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, int(peerProbe.Seconds())},
		{unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(peerSilence.Milliseconds())},
	} {
		err := unix.SetsockoptInt(fd, o.level, o.name, o.value)
		if errors.Is(err, unix.EBADF) || errors.Is(err, unix.ENOTSOCK) || errors.Is(err, unix.EINVAL) {
			return nil // it has ended meanwhile
		}
		if err != nil {
			return fmt.Errorf("bound the silence of a connection: %w", err)
		}
	}
	return nil
}

// portOf is the port of an IP address, -1 of others.
func portOf(a unix.Sockaddr) int {
	switch a := a.(type) {
	case *unix.SockaddrInet4:
		return a.Port
	case *unix.SockaddrInet6:
		return a.Port
	}
	return -1
}
