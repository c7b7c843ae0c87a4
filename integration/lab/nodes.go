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
	gateway := newNodeJSON(Gateway, "GATEWAY", "10.0.0.3")
	gateway.GatewayBridgeName = "external"
	if f.config.ControlledPhysical {
		gateway.PhysIntfs = []physIntfJSON{
			{"external", "eth1", BridgeDPID(Gateway, BrExternal).String()},
			{"flt", "eth2", BridgeDPID(Gateway, BrFlt).String()},
		}
	}
	body := NodeBody{Nodes: []nodeJSON{gateway}}
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
