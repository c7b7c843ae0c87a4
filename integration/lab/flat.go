package lab

import (
	"context"
	"fmt"

	"kvnet/integration/ovs"
	"kvnet/model"
)

// FlatConfig says how the reference lab for FLAT networks is made.
type FlatConfig struct {
	Workers int // w1, w2, …
	// Gateways are gw1, gw2, …; 0 is one. Several share a segment outside, one
	// alone has the external host in its own bridge.
	Gateways int
	// ExternalVLAN is the VLAN of the external host; 0: none.
	ExternalVLAN uint16
	// ControlledPhysical connects the gateway's physical bridges to the server
	// too, as bridges that kvnet makes will be. Otherwise they are learning
	// switches by themselves, as those of workers always are.
	ControlledPhysical bool
	// WithoutExternalPatch leaves the patch between br-int and br-external for
	// later (PlugExternal).
	WithoutExternalPatch bool
}

// Names of the reference lab.
const (
	Gateway  = "gw1"
	External = "ext" // the upstream router and a server behind it
	lanNode  = "lan"
	wanNode  = "wan"

	BrInt      = "br-int"
	BrTun      = "br-tun"
	BrExternal = "br-external"
	BrFlt      = "br-flt"
	brLAN      = "br-lan"
	brWAN      = "br-wan"
)

// Addresses of the external host.
const (
	PeerIP     = "172.16.0.1"
	PeerMAC    = "52:54:00:aa:bb:01"
	InternetIP = "203.0.113.5"
)

// Worker is the name of the i-th worker, from 1.
func Worker(i int) string { return fmt.Sprintf("w%d", i) }

// GatewayName is the name of the i-th gateway, from 1.
func GatewayName(i int) string { return fmt.Sprintf("gw%d", i) }

// BridgeDPID is the datapath id that a bridge of a node has, the one that kvnet
// and ONOS choose when a client names none.
func BridgeDPID(node, bridge string) model.DPID {
	d, _ := model.BridgeDeviceID(bridge + "-" + node).DPID()
	return d
}

// Controlled is a bridge that has a controller.
type Controlled struct {
	Node, Bridge string
	DPID         model.DPID
	Socket       string // where the bridge looks for its controller
}

// Name is node and bridge, for example "gw1/br-int".
func (c Controlled) Name() string { return c.Node + "/" + c.Bridge }

// Flat is the reference lab for FLAT networks:
//
//	VMs ─ br-int ─ br-flt ─┐                        ┌─ br-flt ─ br-int ─ br-external ─ ext
//	      (workers)        └────── provider LAN ────┘           (gw1)
//
// Several gateways have a switch between their br-external and ext.
type Flat struct {
	*Lab
	Gateways   []string
	Workers    []string
	Controlled []Controlled
	config     FlatConfig
}

// NewFlat builds the reference lab, without VMs.
func NewFlat(ctx context.Context, c FlatConfig) (*Flat, error) {
	l, err := New()
	if err != nil {
		return nil, err
	}
	f := &Flat{Lab: l, config: c}
	if err := f.build(ctx); err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

func (f *Flat) build(ctx context.Context) error {
	lan, err := f.AddNode(ctx, lanNode)
	if err != nil {
		return err
	}
	if err := lan.AddBridge(ctx, ovs.Bridge{Name: brLAN}); err != nil {
		return err
	}
	if err := f.buildGateways(ctx, lan); err != nil {
		return fmt.Errorf("build gateway: %w", err)
	}
	for i := range f.config.Workers {
		if err := f.buildWorker(ctx, lan, Worker(i+1)); err != nil {
			return fmt.Errorf("build worker: %w", err)
		}
	}
	return nil
}

// buildGateways builds the gateways and the external host.
func (f *Flat) buildGateways(ctx context.Context, lan *Node) error {
	var wan *Node
	if f.config.Gateways > 1 {
		var err error
		if wan, err = f.AddNode(ctx, wanNode); err != nil {
			return err
		}
		if err := wan.AddBridge(ctx, ovs.Bridge{Name: brWAN}); err != nil {
			return err
		}
	}
	for i := range max(f.config.Gateways, 1) {
		if err := f.buildGateway(ctx, lan, wan, GatewayName(i+1)); err != nil {
			return err
		}
	}
	node, bridge := wan, brWAN
	if wan == nil {
		node, bridge = f.Node(Gateway), BrExternal
	}
	_, err := f.AddHost(ctx, node, bridge, HostConfig{
		Name: External, MAC: PeerMAC, Address: PeerIP + "/24", Extra: []string{InternetIP + "/32"}, VLAN: f.config.ExternalVLAN,
	})
	return err
}

// buildGateway builds a gateway and wires it to the provider LAN and, if there is
// one, to the switch outside.
func (f *Flat) buildGateway(ctx context.Context, lan, wan *Node, name string) error {
	gw, err := f.AddNode(ctx, name)
	if err != nil {
		return err
	}
	interior := []ovs.Port{
		{Name: "int-to-tun", Kind: ovs.Patch, Peer: "tun-to-int"},
		{Name: "int-to-flt", Kind: ovs.Patch, Peer: "flt-to-int"},
	}
	if !f.config.WithoutExternalPatch {
		interior = append(interior, externalPatch)
	}
	wire, lanEnd, err := f.Wire(ctx, gw, lan)
	if err != nil {
		return err
	}
	outer := []ovs.Port{{Name: "external-to-int", Kind: ovs.Patch, Peer: externalPatch.Name}}
	if wan != nil {
		end, wanEnd, err := f.Wire(ctx, gw, wan)
		if err != nil {
			return err
		}
		if err := wan.AddPort(ctx, brWAN, ovs.Port{Name: wanEnd}); err != nil {
			return err
		}
		outer = append(outer, ovs.Port{Name: end})
	}
	tunnel := append(tunnelPorts(), ovs.Port{Name: "tun-to-int", Kind: ovs.Patch, Peer: "int-to-tun"})
	for _, b := range []ovs.Bridge{
		{Name: BrInt, Controlled: true, Ports: interior},
		{Name: BrTun, Controlled: true, Ports: tunnel},
		{Name: BrExternal, Controlled: f.config.ControlledPhysical, Ports: outer},
		{Name: BrFlt, Controlled: f.config.ControlledPhysical, Ports: []ovs.Port{
			{Name: "flt-to-int", Kind: ovs.Patch, Peer: "int-to-flt"}, {Name: wire}}},
	} {
		if err := f.addBridge(ctx, gw, b); err != nil {
			return err
		}
	}
	f.Gateways = append(f.Gateways, name)
	return lan.AddPort(ctx, brLAN, ovs.Port{Name: lanEnd})
}

func (f *Flat) buildWorker(ctx context.Context, lan *Node, name string) error {
	w, err := f.AddNode(ctx, name)
	if err != nil {
		return err
	}
	wire, lanEnd, err := f.Wire(ctx, w, lan)
	if err != nil {
		return err
	}
	for _, b := range []ovs.Bridge{
		{Name: BrInt, Controlled: true, Ports: []ovs.Port{{Name: "int-to-flt", Kind: ovs.Patch, Peer: "flt-to-int"}}},
		{Name: BrTun, Controlled: true, Ports: tunnelPorts()},
		{Name: BrFlt, Ports: []ovs.Port{{Name: "flt-to-int", Kind: ovs.Patch, Peer: "int-to-flt"}, {Name: wire}}},
	} {
		if err := f.addBridge(ctx, w, b); err != nil {
			return err
		}
	}
	f.Workers = append(f.Workers, name)
	return lan.AddPort(ctx, brLAN, ovs.Port{Name: lanEnd})
}

// externalPatch leads from the gateway's br-int to the outside.
var externalPatch = ovs.Port{Name: "int-to-external", Kind: ovs.Patch, Peer: "external-to-int"}

// ExternalPatch is the name of the gateway's patch port to the outside.
var ExternalPatch = externalPatch.Name

// PlugExternal adds the gateway's patch port to the outside.
func (f *Flat) PlugExternal(ctx context.Context) error {
	return f.Node(Gateway).AddPort(ctx, BrInt, externalPatch)
}

func (f *Flat) addBridge(ctx context.Context, n *Node, b ovs.Bridge) error {
	b.DPID = BridgeDPID(n.Name, b.Name)
	if err := n.AddBridge(ctx, b); err != nil {
		return err
	}
	if b.Controlled {
		f.Controlled = append(f.Controlled, Controlled{n.Name, b.Name, b.DPID, n.ControllerSocket(b.Name)})
	}
	return nil
}

// AddVM plugs a VM into br-int of a worker.
func (f *Flat) AddVM(ctx context.Context, worker string, c HostConfig) (*Host, error) {
	return f.AddHost(ctx, f.Node(worker), BrInt, c)
}

// AddLANHost plugs a machine into the provider LAN.
func (f *Flat) AddLANHost(ctx context.Context, c HostConfig) (*Host, error) {
	return f.AddHost(ctx, f.Node(lanNode), brLAN, c)
}

func tunnelPorts() []ovs.Port {
	var ports []ovs.Port
	for _, t := range []string{"vxlan", "gre", "geneve"} {
		ports = append(ports, ovs.Port{Name: t, Kind: ovs.Tunnel, TunnelType: t})
	}
	return ports
}
