// Package ovstest starts a real Open vSwitch for tests: a database server and a
// switch daemon of their own, with bridges in the userspace datapath, in a network
// namespace of their own. It needs root and the package openvswitch-switch.
package ovstest

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"kvnet/model"
)

// Switch is a running Open vSwitch.
type Switch struct {
	t   testing.TB
	dir string
	env []string
	pid int // of the switch daemon
}

// Start starts an Open vSwitch that ends with the test.
func Start(t testing.TB) *Switch {
	t.Helper()
	for _, tool := range []string{"ovsdb-tool", "ovsdb-server", "ovs-vswitchd", "ovs-vsctl", "ovs-ofctl"} {
		if _, err := lookPath(tool); err != nil {
			t.Fatalf("%v: install the Debian package openvswitch-switch", err)
		}
	}
	if os.Geteuid() != 0 {
		t.Fatal("Open vSwitch needs root: run the tests as root")
	}
	// Not t.TempDir: names of Unix sockets are short.
	dir, err := os.MkdirTemp("", "ovs")
	if err != nil {
		t.Fatalf("make a directory for Open vSwitch: %v", err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	s := &Switch{t: t, dir: dir, env: append(os.Environ(), "OVS_RUNDIR="+dir, "OVS_LOGDIR="+dir, "OVS_DBDIR="+dir, "OVS_SYSCONFDIR="+dir)}
	s.run("ovsdb-tool", "create", s.path("conf.db"), "/usr/share/openvswitch/vswitch.ovsschema")
	s.daemon("ovsdb-server", 0, "--remote=punix:"+s.path("db.sock"), s.path("conf.db"))
	s.awaitSocket("db.sock")
	s.Vsctl("--no-wait", "init")
	// The devices of bridges and of the datapath have fixed names and outlive the
	// daemon; in a namespace of its own they are in nobody's way and go with it.
	s.pid = s.daemon("ovs-vswitchd", syscall.CLONE_NEWNET, "--disable-system", "unix:"+s.path("db.sock"))
	if err := s.inNamespace(loopbackUp); err != nil {
		t.Fatalf("bring up the loopback device of the switch: %v", err)
	}
	return s
}

// lookPath finds a tool also where a user's path doesn't lead.
func lookPath(tool string) (string, error) {
	if p, err := exec.LookPath(tool); err == nil {
		return p, nil
	}
	for _, dir := range []string{"/usr/sbin", "/sbin"} {
		if p := filepath.Join(dir, tool); exec.Command(p, "--version").Run() == nil {
			return p, nil
		}
	}
	return "", fmt.Errorf("%s isn't installed", tool)
}

func (s *Switch) path(name string) string { return filepath.Join(s.dir, name) }

func (s *Switch) db() string { return "--db=unix:" + s.path("db.sock") }

// daemon starts a program in the background and stops it at the end of the test.
// It is killed when the test process dies.
func (s *Switch) daemon(name string, cloneflags uintptr, args ...string) (pid int) {
	s.t.Helper()
	path, err := lookPath(name)
	if err != nil {
		s.t.Fatal(err)
	}
	log := s.path(name + ".log")
	cmd := exec.Command(path, append([]string{"--no-chdir", "--pidfile=" + s.path(name+".pid"), "--log-file=" + log,
		"--unixctl=" + s.path(name+".ctl"), "-vconsole:off"}, args...)...)
	cmd.Env = s.env
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Cloneflags: cloneflags}
	started, ended := make(chan error, 1), make(chan struct{})
	go func() {
		defer close(ended)
		// The kernel sends Pdeathsig when the thread that started the process
		// ends, so this one stays until the process has ended.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // it was told to end
		}
	}()
	if err := <-started; err != nil {
		s.t.Fatalf("start %s: %v", name, err)
	}
	s.t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended
		select {
		case <-ended:
		case <-time.After(10 * time.Second):
			s.t.Errorf("%s doesn't end: it is killed", name)
			_ = cmd.Process.Kill()
			<-ended
		}
		if text, err := os.ReadFile(log); s.t.Failed() && err == nil {
			for line := range strings.Lines(string(text)) {
				if strings.Contains(line, "|WARN|") || strings.Contains(line, "|ERR|") {
					s.t.Logf("%s: %s", name, strings.TrimSpace(line))
				}
			}
		}
	})
	return cmd.Process.Pid
}

// awaitSocket waits until a daemon listens.
func (s *Switch) awaitSocket(name string) {
	s.t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for {
		conn, err := net.Dial("unix", s.path(name))
		if err == nil {
			conn.Close()
			return
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("wait for %s: %v", name, err)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// run runs a tool to its end and returns what it wrote.
func (s *Switch) run(name string, args ...string) string {
	s.t.Helper()
	out, err := s.try(name, args...)
	if err != nil {
		s.t.Fatal(err)
	}
	return out
}

func (s *Switch) try(name string, args ...string) (string, error) {
	path, err := lookPath(name)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env = s.env
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.String(), fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, stderr.String())
	}
	return stdout.String(), nil
}

// Vsctl runs ovs-vsctl.
func (s *Switch) Vsctl(args ...string) string {
	s.t.Helper()
	return s.run("ovs-vsctl", append([]string{s.db(), "--retry", "--timeout=20"}, args...)...)
}

// Ofctl runs ovs-ofctl on a bridge: command, then bridge, then the rest.
func (s *Switch) Ofctl(command, bridge string, args ...string) string {
	s.t.Helper()
	out, err := s.TryOfctl(command, bridge, args...)
	if err != nil {
		s.t.Fatal(err)
	}
	return out
}

// TryOfctl is Ofctl for commands that may fail.
func (s *Switch) TryOfctl(command, bridge string, args ...string) (string, error) {
	return s.try("ovs-ofctl", append([]string{"-O", "OpenFlow13", command, "unix:" + s.path(bridge+".mgmt")}, args...)...)
}

// AddBridge adds a bridge with ports, which are patch ports that lead nowhere and
// have the numbers 1, 2, … in their order. Without rules it forwards nothing.
func (s *Switch) AddBridge(name string, d model.DPID, ports ...string) {
	s.t.Helper()
	args := []string{"add-br", name,
		"--", "set", "bridge", name, "datapath_type=netdev", "fail_mode=secure", "protocols=OpenFlow13",
		"other_config:datapath-id=" + fmt.Sprintf("%016x", uint64(d))}
	for i, p := range ports {
		args = append(args, "--", "add-port", name, p,
			"--", "set", "interface", p, "type=patch", "options:peer="+p+"-peer", fmt.Sprintf("ofport_request=%d", i+1))
	}
	s.Vsctl(args...)
}

// SetController makes a bridge connect to controllers, whose listeners are made by
// Listen, and again within a second whenever it loses one.
func (s *Switch) SetController(bridge string, addrs ...net.Addr) {
	s.t.Helper()
	s.setController(bridge, "tcp", addrs)
}

// SetControllerTLS is SetController over TLS. SetTLS comes before.
func (s *Switch) SetControllerTLS(bridge string, addrs ...net.Addr) {
	s.t.Helper()
	s.setController(bridge, "ssl", addrs)
}

func (s *Switch) setController(bridge, method string, addrs []net.Addr) {
	s.t.Helper()
	var args, ids []string
	for i, a := range addrs {
		ids = append(ids, fmt.Sprintf("@c%d", i))
		args = append(args, "--", "--id="+ids[i], "create", "controller", fmt.Sprintf("target=\"%s:%s\"", method, a),
			"connection_mode=out-of-band", "max_backoff=1000", "inactivity_probe=5000")
	}
	args = append(args, "--", "set", "bridge", bridge, "controller=["+strings.Join(ids, ",")+"]")
	s.Vsctl(args[1:]...)
}

// SetTLS gives the switch its certificate with the key, and the authority that
// signs the controllers' certificates: PEM files.
func (s *Switch) SetTLS(cert, key, ca string) {
	s.t.Helper()
	s.Vsctl("set-ssl", key, cert, ca)
}

// DelController ends the connection of a bridge.
func (s *Switch) DelController(bridge string) {
	s.t.Helper()
	s.Vsctl("del-controller", bridge)
}

// AddPort adds a port to a bridge: with type=patch, type=internal and so on.
func (s *Switch) AddPort(bridge, port string, settings ...string) {
	s.t.Helper()
	s.Vsctl(append([]string{"add-port", bridge, port, "--", "set", "interface", port}, settings...)...)
}

// DelPort removes a port of a bridge.
func (s *Switch) DelPort(bridge, port string) {
	s.t.Helper()
	s.Vsctl("del-port", bridge, port)
}

// Connect joins ports of two bridges: what leaves one comes in at the other.
func (s *Switch) Connect(a, b string) {
	s.t.Helper()
	s.Vsctl("set", "interface", a, "options:peer="+b, "--", "set", "interface", b, "options:peer="+a)
}

// Inject makes a bridge handle a frame as if it had come in at a port.
func (s *Switch) Inject(bridge string, port uint32, frame []byte) {
	s.t.Helper()
	s.Ofctl("packet-out", bridge, fmt.Sprintf("in_port=%d packet=%x actions=resubmit(,0)", port, frame))
}

// Flows is `ovs-ofctl dump-flows --no-stats` without its first line, one rule a
// line without leading blanks.
func (s *Switch) Flows(bridge string) []string {
	s.t.Helper()
	return lines(s.Ofctl("dump-flows", bridge, "--no-stats"))
}

// Groups is `ovs-ofctl dump-groups` without its first line.
func (s *Switch) Groups(bridge string) []string {
	s.t.Helper()
	return lines(s.Ofctl("dump-groups", bridge))
}

func lines(text string) []string {
	var out []string
	for l := range strings.Lines(text) {
		l = strings.TrimSpace(l)
		if l != "" && !strings.HasPrefix(l, "OFPST_") && !strings.HasPrefix(l, "NXST_") {
			out = append(out, l)
		}
	}
	return out
}
