package ovs

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"kvnet/model"
)

// Bridge describes a bridge to add.
type Bridge struct {
	Name string
	// DPID is the datapath id; 0 leaves the choice to Open vSwitch.
	DPID model.DPID
	// Controlled makes the bridge connect to its controller's socket
	// (ControllerSocket) and forward nothing by itself (fail_mode=secure).
	// Otherwise it is an ordinary learning switch.
	Controlled bool
	Ports      []Port
}

// PortKind says what lies behind a port.
type PortKind int

// The kinds of ports.
const (
	// Device is an interface of the namespace that exists already.
	Device PortKind = iota
	// Patch leads to the port Peer of another bridge of the instance.
	Patch
	// Tunnel is a VXLAN, GRE or GENEVE port (by Port.TunnelType) whose remote
	// address and key come from the rules.
	Tunnel
)

// Port describes a port of a bridge.
type Port struct {
	Name       string
	Kind       PortKind
	Peer       string
	TunnelType string
	Number     uint32 // 0 leaves the choice to Open vSwitch
	// Tag makes it an access port of that VLAN: tagged within the bridge,
	// untagged outside; 0: all VLANs, as they come.
	Tag uint16
}

// ControllerSocket is where a controlled bridge looks for its controller: Open
// vSwitch accepts a local socket only at this place.
func (i *Instance) ControllerSocket(bridge string) string {
	return filepath.Join(i.Dir, bridge+".controller")
}

// AddBridge adds a bridge with its ports in one transaction. The ports at the
// other ends of patch ports may come later.
func (i *Instance) AddBridge(ctx context.Context, b Bridge) error {
	args := []string{"add-br", b.Name, "--", "set", "bridge", b.Name, "datapath_type=netdev", "protocols=OpenFlow13"}
	if b.DPID != 0 {
		args = append(args, fmt.Sprintf("other-config:datapath-id=%016x", uint64(b.DPID)))
	}
	if b.Controlled {
		args = append(args, "fail_mode=secure", "other-config:disable-in-band=true",
			"--", "set-controller", b.Name, "unix:"+i.ControllerSocket(b.Name))
	}
	for _, p := range b.Ports {
		args = append(args, p.add(b.Name)...)
	}
	if err := i.Vsctl(ctx, args...); err != nil {
		return fmt.Errorf("add bridge %s: %w", b.Name, err)
	}
	return nil
}

// Reconnect makes a bridge connect to its controller at once. By itself it waits
// for up to 8 s between attempts (Open vSwitch 3.1 does not regard max_backoff),
// but it tries a controller with another name at once; one more slash makes the
// name another one for the same socket.
func (i *Instance) Reconnect(ctx context.Context, bridge string) error {
	target, err := i.Get(ctx, "controller", bridge, "target")
	if err != nil {
		return err
	}
	next := "unix:" + i.ControllerSocket(bridge)
	if strings.Trim(target, `"`) == next {
		next = "unix:" + filepath.Dir(i.ControllerSocket(bridge)) + "//" + filepath.Base(i.ControllerSocket(bridge))
	}
	return i.Vsctl(ctx, "set", "controller", bridge, fmt.Sprintf("target=%q", next))
}

// ControllerSocketOf is where a bridge looks for the n-th of several controllers,
// from 0.
func (i *Instance) ControllerSocketOf(bridge string, n int) string {
	if n == 0 {
		return i.ControllerSocket(bridge)
	}
	return fmt.Sprintf("%s%d", i.ControllerSocket(bridge), n+1)
}

// SetControllers gives a bridge controllers, by their sockets. Connections to those
// that it has already stay.
func (i *Instance) SetControllers(ctx context.Context, bridge string, sockets ...string) error {
	args := []string{"set-controller", bridge}
	for _, s := range sockets {
		args = append(args, "unix:"+s)
	}
	return i.Vsctl(ctx, args...)
}

// AddPort adds a port to a bridge.
func (i *Instance) AddPort(ctx context.Context, bridge string, p Port) error {
	return i.Vsctl(ctx, p.add(bridge)[1:]...)
}

// RemovePort removes a port.
func (i *Instance) RemovePort(ctx context.Context, name string) error {
	return i.Vsctl(ctx, "del-port", name)
}

// PortNumber is the OpenFlow number of a port.
func (i *Instance) PortNumber(ctx context.Context, name string) (uint32, error) {
	text, err := i.Get(ctx, "interface", name, "ofport")
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		return 0, fmt.Errorf("port %s has no OpenFlow number: %q", name, text)
	}
	return uint32(n), nil
}

// add writes the port as a part of an ovs-vsctl command.
func (p Port) add(bridge string) []string {
	args := []string{"--", "add-port", bridge, p.Name}
	if p.Tag != 0 {
		args = append(args, "tag="+strconv.FormatUint(uint64(p.Tag), 10))
	}
	args = append(args, "--", "set", "interface", p.Name)
	switch p.Kind {
	case Patch:
		args = append(args, "type=patch", "options:peer="+p.Peer)
	case Tunnel:
		args = append(args, "type="+p.TunnelType, "options:remote_ip=flow", "options:key=flow")
	case Device:
		args = append(args, `type=""`)
	}
	if p.Number != 0 {
		args = append(args, "ofport_request="+strconv.FormatUint(uint64(p.Number), 10))
	}
	return args
}

// Flows returns the rules of a bridge.
func (i *Instance) Flows(ctx context.Context, bridge string) ([]Flow, error) {
	out, err := i.Ofctl(ctx, []string{"--no-names"}, "dump-flows", bridge)
	if err != nil {
		return nil, err
	}
	var flows []Flow
	for _, line := range contentLines(out) {
		f, err := ParseFlow(line)
		if err != nil {
			return nil, err
		}
		flows = append(flows, f)
	}
	return flows, nil
}

// contentLines drops the headings that name the reply.
func contentLines(out string) []string {
	var lines []string
	for line := range strings.Lines(out) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "OFPST_") || strings.HasPrefix(line, "NXST_") {
			continue
		}
		lines = append(lines, line)
	}
	return lines
}
