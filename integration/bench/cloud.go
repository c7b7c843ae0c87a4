package bench

import (
	"fmt"
	"net/netip"

	"kvnet/integration/lab"
	"kvnet/model"
	"kvnet/model/state"
	"kvnet/southbound/flow"
)

// The synthetic cloud: ports of tunnel networks, perNetwork in each, perRouter
// networks behind each router, all routers on one gateway, VMs spread over
// workers.
const (
	perNetwork = 100
	perRouter  = 10
	workers    = 20

	gateway     = "gw"
	externalNet = "ext-net"
	outerPatch  = "int-to-external"
	tunnelName  = "vxlan"
)

// The gateway's bridges.
var (
	gatewayInt = lab.BridgeDPID(gateway, lab.BrInt)
	gatewayTun = lab.BridgeDPID(gateway, lab.BrTun)
)

// gatewayPorts are the ports of the gateway's bridges that rules name, in the
// order of their numbers from 1.
var gatewayPorts = map[model.DPID][]string{
	gatewayInt: {outerPatch, "int-to-tun"},
	gatewayTun: {"tun-to-int", tunnelName},
}

// revision is that of all objects of a new cloud.
const revision = 10

// cloud makes the objects of a cloud with that many ports.
func cloud(ports int) []model.Object {
	meta := model.Meta{Created: revision, Modified: revision}
	outer := "external"
	objects := []model.Object{
		node(gateway, model.NodeGateway, 1, &outer),
		&model.NodeStatus{Meta: meta, Hostname: gateway, Life: revision, State: model.NodeComplete, ExternalMAC: model.FirstExternalMAC},
		&model.Network{Meta: meta, ID: externalNet, Name: externalNet, Type: model.NetworkFLAT, MTU: 1500,
			CIDR: "172.16.0.0/16", GatewayIP: netip.MustParseAddr("172.16.0.1")},
	}
	for i := range workers {
		w := worker(i)
		objects = append(objects, node(w, model.NodeWorker, 2+i, nil),
			&model.NodeStatus{Meta: meta, Hostname: w, Life: revision, State: model.NodeComplete})
	}
	networks := (ports + perNetwork - 1) / perNetwork
	for r := 0; r*perRouter < networks; r++ {
		router := &model.Router{Meta: meta, Name: fmt.Sprintf("router-%d", r), EnableSNAT: true, MAC: mac(0xfa, r),
			External: &model.External{IPText: address(172<<24|16<<16|256, r).String(), NetworkID: externalNet},
			Peer:     &model.PeerRouter{IP: netip.MustParseAddr("172.16.0.1")}}
		for n := r * perRouter; n < min((r+1)*perRouter, networks); n++ {
			router.Internal = append(router.Internal, networkID(n))
			objects = append(objects, &model.Network{Meta: meta, ID: networkID(n), Name: networkID(n), Type: model.NetworkVXLAN,
				MTU: 1450, SegmentID: fmt.Sprint(100 + n), CIDR: address(10<<24, n*256).String() + "/24", GatewayIP: address(10<<24, n*256+1)})
		}
		objects = append(objects, router, &model.RouterStatus{Meta: meta, Name: router.Name, Life: revision, Gateway: gateway,
			PeerIP: router.Peer.IP, PeerMAC: mac(0x52, 1), Zone: uint16(1 + r)})
	}
	for i := range ports {
		objects = append(objects, port(i, worker(i%workers), revision))
	}
	return objects
}

func node(name string, kind model.NodeType, n int, outer *string) *model.Node {
	return &model.Node{Meta: model.Meta{Created: revision, Modified: revision}, Hostname: name, Type: kind,
		ManagementIP: address(10<<24|200<<16, n), DataIP: address(10<<24|200<<16, n),
		IntegrationBridge: model.DeviceID(lab.BridgeDPID(name, lab.BrInt).String()),
		TunnelBridge:      model.DeviceID(lab.BridgeDPID(name, lab.BrTun).String()), GatewayBridgeName: outer}
}

// port is the i-th port, on a worker, as it was written at revision modified.
func port(i int, workerName string, modified int64) *model.Port {
	return &model.Port{Meta: model.Meta{Created: revision, Modified: modified}, VMName: fmt.Sprintf("vm-%d", i),
		NetworkID: networkID(i / perNetwork), MAC: mac(0x02, i), IP: address(10<<24, i/perNetwork*256+10+i%perNetwork),
		DeviceID: model.DeviceID(lab.BridgeDPID(workerName, lab.BrInt).String())}
}

func worker(i int) string    { return fmt.Sprintf("worker-%d", i) }
func networkID(n int) string { return fmt.Sprintf("net-%d", n) }

func mac(first byte, n int) model.MAC {
	return model.MAC{first, 0, byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}
}

func address(base uint32, n int) netip.Addr {
	a := base + uint32(n)
	return netip.AddrFrom4([4]byte{byte(a >> 24), byte(a >> 16), byte(a >> 8), byte(a)})
}

// newState makes a state that holds the cloud and the gateway's switches with
// their ports.
func newState(ports int) (*state.DB, error) {
	db := state.New()
	if err := db.Replace(revision, cloud(ports)); err != nil {
		return nil, fmt.Errorf("fill the state: %w", err)
	}
	for d, names := range gatewayPorts {
		var list []model.SwitchPort
		for i, name := range names {
			list = append(list, model.SwitchPort{DPID: d, Number: uint32(i + 1), Name: name, Enabled: true})
		}
		db.SwitchConnected(model.Switch{DPID: d, Role: model.RoleMaster}, list)
	}
	return db, nil
}

// sets are rules by owner.
type sets map[flow.Owner]flow.Set

func (s sets) rules() (n int) {
	for _, set := range s {
		n += len(set.Rules)
	}
	return n
}
