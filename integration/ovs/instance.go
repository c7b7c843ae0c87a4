package ovs

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"kvnet/integration/netns"
)

// schema is where Debian's openvswitch-switch keeps the database schema.
const schema = "/usr/share/openvswitch/vswitch.ovsschema"

// commandTimeout bounds each call of a tool of Open vSwitch.
const commandTimeout = 15 * time.Second

// Instance is a running Open vSwitch.
type Instance struct {
	NS  *netns.NS
	Dir string // sockets, database and logs

	database *process
	vswitchd *process
}

// Start makes a new database in dir and runs Open vSwitch in ns. The path of dir
// has to be short: sockets lie in it.
func Start(ctx context.Context, ns *netns.NS, dir string) (*Instance, error) {
	i := &Instance{NS: ns, Dir: dir}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("make folder of Open vSwitch: %w", err)
	}
	if err := i.tool(ctx, "ovsdb-tool", "create", i.path("conf.db"), schema); err != nil {
		return nil, err
	}
	var err error
	if i.database, err = i.spawn("ovsdb-server", i.path("conf.db"),
		"--remote=punix:"+i.path("db.sock"), "--unixctl="+i.path("ovsdb.ctl"), "--log-file="+i.path("ovsdb.log")); err != nil {
		return nil, err
	}
	if err := i.waitFor(ctx, i.database, "db.sock"); err != nil {
		return nil, errors.Join(err, i.Stop())
	}
	if err := i.Vsctl(ctx, "--no-wait", "init"); err != nil {
		return nil, errors.Join(err, i.Stop())
	}
	if err := i.StartSwitch(ctx); err != nil {
		return nil, errors.Join(err, i.Stop())
	}
	return i, nil
}

// StartSwitch runs ovs-vswitchd on the instance's database, again after
// KillSwitch.
func (i *Instance) StartSwitch(ctx context.Context) error {
	var err error
	if i.vswitchd, err = i.spawn("ovs-vswitchd", "unix:"+i.path("db.sock"), "--disable-system",
		"--unixctl="+i.path("vswitchd.ctl"), "--log-file="+i.path("vswitchd.log")); err != nil {
		return err
	}
	return i.waitFor(ctx, i.vswitchd, "vswitchd.ctl")
}

// KillSwitch ends ovs-vswitchd at once. Its rules are gone with it.
func (i *Instance) KillSwitch() error { return i.vswitchd.kill() }

// PauseSwitch stops ovs-vswitchd as by SIGSTOP until ResumeSwitch.
func (i *Instance) PauseSwitch() error { return i.vswitchd.signal(syscall.SIGSTOP) }

// ResumeSwitch lets a paused ovs-vswitchd go on.
func (i *Instance) ResumeSwitch() error { return i.vswitchd.signal(syscall.SIGCONT) }

// Stop ends all processes of the instance.
func (i *Instance) Stop() error {
	return errors.Join(i.vswitchd.kill(), i.database.kill())
}

// Vsctl runs ovs-vsctl and waits until ovs-vswitchd has done what it says.
func (i *Instance) Vsctl(ctx context.Context, args ...string) error {
	return i.tool(ctx, "ovs-vsctl", append([]string{"--timeout=10", "--db=unix:" + i.path("db.sock")}, args...)...)
}

// Get reads one column of a row, as ovs-vsctl prints it.
func (i *Instance) Get(ctx context.Context, table, record, column string) (string, error) {
	out, err := i.output(ctx, "ovs-vsctl", "--timeout=10", "--db=unix:"+i.path("db.sock"), "get", table, record, column)
	return strings.TrimSpace(out), err
}

// Appctl runs ovs-appctl on ovs-vswitchd.
func (i *Instance) Appctl(ctx context.Context, args ...string) (string, error) {
	return i.output(ctx, "ovs-appctl", append([]string{"-t", i.path("vswitchd.ctl")}, args...)...)
}

// Ofctl runs ovs-ofctl with OpenFlow 1.3; command comes first, bridge second,
// as in "dump-flows br-int".
func (i *Instance) Ofctl(ctx context.Context, options []string, command, bridge string, args ...string) (string, error) {
	all := append([]string{"-O", "OpenFlow13"}, options...)
	all = append(all, command, "unix:"+i.path(bridge+".mgmt"))
	return i.output(ctx, "ovs-ofctl", append(all, args...)...)
}

func (i *Instance) path(name string) string { return filepath.Join(i.Dir, name) }

func (i *Instance) environment() []string {
	return append(os.Environ(), "OVS_RUNDIR="+i.Dir, "OVS_LOGDIR="+i.Dir, "OVS_DBDIR="+i.Dir)
}

func (i *Instance) tool(ctx context.Context, name string, args ...string) error {
	_, err := i.output(ctx, name, args...)
	return err
}

func (i *Instance) output(ctx context.Context, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = i.environment()
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return string(out), fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return string(out), nil
}

func (i *Instance) spawn(name string, args ...string) (*process, error) {
	// The command outlives every context of a call: Stop ends it.
	cmd := i.NS.Command(context.Background(), name, args...)
	cmd.Env = i.environment()
	return startProcess(cmd, name, i.path(name+".out"))
}

// waitFor waits until p has made its socket and answers on it.
func (i *Instance) waitFor(ctx context.Context, p *process, socket string) error {
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		// The socket is there a moment before anybody listens on it.
		if conn, err := net.Dial("unix", i.path(socket)); err == nil {
			_ = conn.Close()
			return nil
		}
		select {
		case <-p.done:
			return fmt.Errorf("%s ended at once: %s", p.name, p.outputTail())
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w", p.name, ctx.Err())
		case <-tick.C:
		}
	}
}
