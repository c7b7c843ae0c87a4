package lab

import "fmt"

// NodeBody is the body that creates all nodes of the lab by REST.
func (f *Flat) NodeBody() map[string]any {
	gateway := f.node(Gateway, "GATEWAY", "10.0.0.3")
	gateway["gatewayBridgeName"] = "external"
	if f.config.ControlledPhysical {
		gateway["phyIntfs"] = []map[string]any{
			{"network": "external", "intf": "eth1", "physBridgeId": BridgeDPID(Gateway, BrExternal).String()},
			{"network": "flt", "intf": "eth2", "physBridgeId": BridgeDPID(Gateway, BrFlt).String()},
		}
	}
	nodes := []map[string]any{gateway}
	for i, w := range f.Workers {
		nodes = append(nodes, f.node(w, "WORKER", fmt.Sprintf("10.0.0.%d", 11+i)))
	}
	return map[string]any{"nodes": nodes}
}

func (f *Flat) node(name, kind, ip string) map[string]any {
	return map[string]any{
		"hostname": name, "type": kind, "managementIp": ip, "dataIp": ip,
		"integrationBridge": BridgeDPID(name, BrInt).String(),
		"tunnelBridge":      BridgeDPID(name, BrTun).String(),
	}
}
