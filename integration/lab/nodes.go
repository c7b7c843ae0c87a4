package lab

import "fmt"

// NodeBody is the body that creates nodes by REST.
type NodeBody struct {
	Nodes []nodeJSON `json:"nodes"`
}

type nodeJSON struct {
	Hostname          string         `json:"hostname"`
	Type              string         `json:"type"`
	ManagementIP      string         `json:"managementIp"`
	DataIP            string         `json:"dataIp"`
	IntegrationBridge string         `json:"integrationBridge"`
	TunnelBridge      string         `json:"tunnelBridge"`
	GatewayBridgeName string         `json:"gatewayBridgeName,omitempty"`
	PhysIntfs         []physIntfJSON `json:"phyIntfs,omitempty"`
}

type physIntfJSON struct {
	Network    string `json:"network"`
	Intf       string `json:"intf"`
	PhysBridge string `json:"physBridgeId"`
}

// NodeBody is the body that creates all nodes of the lab.
func (f *Flat) NodeBody() NodeBody {
	var body NodeBody
	for i, g := range f.Gateways {
		gateway := newNodeJSON(g, "GATEWAY", fmt.Sprintf("10.0.0.%d", 3+i))
		gateway.GatewayBridgeName = "external"
		if f.config.ControlledPhysical {
			gateway.PhysIntfs = []physIntfJSON{
				{"external", "eth1", BridgeDPID(g, BrExternal).String()},
				{"flt", "eth2", BridgeDPID(g, BrFlt).String()},
			}
		}
		body.Nodes = append(body.Nodes, gateway)
	}
	for i, w := range f.Workers {
		body.Nodes = append(body.Nodes, newNodeJSON(w, "WORKER", fmt.Sprintf("10.0.0.%d", 11+i)))
	}
	return body
}

func newNodeJSON(name, kind, ip string) nodeJSON {
	return nodeJSON{
		Hostname: name, Type: kind, ManagementIP: ip, DataIP: ip,
		IntegrationBridge: BridgeDPID(name, BrInt).String(),
		TunnelBridge:      BridgeDPID(name, BrTun).String(),
	}
}
