package cluster

import (
	"net/http"

	"kvnet/integration/lab"
	"kvnet/integration/server"
)

// The workload: a network of VMs behind router r1, which translates addresses
// on gw1, and a balancer of two of them with a floating IP.
const (
	Router     = "r1"
	Balancer   = "web"
	Network    = "flat1"
	VIP        = "192.168.10.250"
	RouterIP   = "172.16.0.100"
	BalancerIP = "172.16.0.150"
)

// VM is a machine of the workload.
type VM struct{ Name, MAC, IP string }

// VMs are the machines of the workload, all on worker w1. The first two are the
// balancer's members; the third is there for new work.
var VMs = []VM{
	{"vm1", "fa:16:3e:00:00:11", "192.168.10.11"},
	{"vm2", "fa:16:3e:00:00:12", "192.168.10.12"},
	{"vm3", "fa:16:3e:00:00:13", "192.168.10.13"},
}

// Write is a request that a user makes.
type Write struct {
	Method, Path string
	Body         any
}

// Workload are the requests that make the workload.
func (w *World) Workload() []Write {
	post := func(path string, body any) Write {
		return Write{http.MethodPost, server.NetworkingPath + path, body}
	}
	writes := []Write{
		{http.MethodPost, server.NodePath, w.NodeBody()},
		post("/network", NetworkBody("ext", "172.16.0")),
		post("/network", NetworkBody(Network, "192.168.10")),
		post("/router", RouterBody()),
	}
	for _, v := range VMs {
		writes = append(writes, post("/port", PortBody(v)))
	}
	return append(writes,
		post("/loadbalancer", BalancerBody(VMs[0].IP, VMs[1].IP)),
		post("/floating-ip", FloatingIPBody("web-fip", BalancerIP, VIP)))
}

// NetworkBody is a FLAT network of 256 addresses.
func NetworkBody(id, net string) map[string]any {
	return map[string]any{
		"networkId": id, "type": "FLAT", "name": id, "mtu": 1500, "gatewayIp": net + ".1", "defaultRoute": true,
		"cidr": net + ".0/24", "ipPool": map[string]any{"start": net + ".10", "end": net + ".200"},
	}
}

// RouterBody is the router, which leaves through gw1.
func RouterBody() map[string]any {
	return map[string]any{
		"name": Router, "mac": "fa:00:00:00:00:0a", "enableSnat": true, "internal": []string{Network}, "gateway": lab.Gateway,
		"external":   map[string]any{"ip": RouterIP, "network": "ext"},
		"peerRouter": map[string]any{"ip": lab.PeerIP},
	}
}

// PortBody is a VM's port.
func PortBody(v VM) map[string]any {
	return map[string]any{
		"vmName": v.Name, "networkId": Network, "macAddress": v.MAC, "ipAddress": v.IP,
		"deviceId": lab.BridgeDPID(lab.Worker(1), lab.BrInt).String(),
	}
}

// BalancerBody is the balancer with these members.
func BalancerBody(members ...string) map[string]any {
	return map[string]any{"name": Balancer, "vip": VIP, "networkId": Network, "members": members, "rules": []any{
		map[string]any{"protocol": "TCP", "portRangeMin": 80, "portRangeMax": 80}, map[string]any{"protocol": "ICMP"},
	}}
}

// FloatingIPBody is a floating IP of the router.
func FloatingIPBody(id, floating, fixed string) map[string]any {
	return map[string]any{"id": id, "routerName": Router, "networkName": "ext", "floatingIp": floating, "fixedIp": fixed}
}
