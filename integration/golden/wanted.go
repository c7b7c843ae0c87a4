package golden

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"kvnet/integration/ovs"
	"kvnet/integration/server"
)

// wanted is what the replay has written by REST so far.
type wanted struct {
	server   *server.Server
	networks map[string]map[string]any
	routers  map[string]map[string]any
	nodes    map[string]map[string]any
	lbs      map[string]map[string]any
}

func newWanted(s *server.Server) *wanted {
	return &wanted{
		server: s, networks: map[string]map[string]any{}, routers: map[string]map[string]any{},
		nodes: map[string]map[string]any{}, lbs: map[string]map[string]any{},
	}
}

// do writes what a step says and expects an answer that is a success, or status if
// that isn't 0. done is false for a step that is no REST write.
func (w *wanted) do(ctx context.Context, step Step, status int) (done bool, err error) {
	method, path, body := http.MethodPost, server.NetworkingPath, map[string]any(nil)
	kept, key := map[string]map[string]any{}, "" // where what is written is remembered
	switch step.Op {
	case "createNode":
		path, body = server.NodePath, map[string]any{"nodes": []any{step.Node}}
	case "removeNode":
		method, path = http.MethodDelete, server.NodePath+"/"+step.Hostname
		kept, key = w.nodes, step.Hostname
	case "createNetwork":
		path, body = path+"/network", step.Network
		kept, key = w.networks, text(body, "networkId")
	case "removeNetwork":
		method, path = http.MethodDelete, server.ObjectPath("network", step.ID)
		kept, key = w.networks, step.ID
	case "createPort":
		path, body = path+"/port", step.Port
	case "updatePort":
		method, path, body = http.MethodPut, server.ObjectPath("port", text(step.Port, "macAddress")), step.Port
	case "removePort":
		method, path = http.MethodDelete, server.ObjectPath("port", step.MAC)
	case "createRouter":
		path, body = path+"/router", step.Router
		kept, key = w.routers, text(body, "name")
	case "updateRouter":
		method, path, body = http.MethodPut, server.ObjectPath("router", text(step.Router, "name")), step.Router
		kept, key = w.routers, text(body, "name")
	case "peerMac":
		method, path, body = http.MethodPut, server.ObjectPath("router", step.Name), w.withPeerMAC(step.Name, step.MAC)
		kept, key = w.routers, step.Name
	case "removeRouter":
		method, path = http.MethodDelete, server.ObjectPath("router", step.Name)
		kept, key = w.routers, step.Name
	case "createLb":
		path, body = path+"/loadbalancer", step.LB
		kept, key = w.lbs, text(body, "name")
	case "updateLb":
		method, path, body = http.MethodPut, server.ObjectPath("loadbalancer", text(step.LB, "name")), step.LB
		kept, key = w.lbs, text(body, "name")
	case "removeLb":
		method, path = http.MethodDelete, server.ObjectPath("loadbalancer", step.Name)
		kept, key = w.lbs, step.Name
	case "createFip":
		path, body = path+"/floating-ip", step.FIP
	case "updateFip":
		method, path, body = http.MethodPut, server.ObjectPath("floating-ip", text(step.FIP, "id")), step.FIP
	case "removeFip":
		method, path = http.MethodDelete, server.ObjectPath("floating-ip", step.ID)
	default:
		return false, nil
	}
	var encoded any
	if body != nil {
		encoded = body
	}
	if status != 0 {
		got, answer, err := w.server.Do(ctx, method, path, encoded)
		if err == nil && got != status {
			err = fmt.Errorf("%s %s: %d %s, want %d", method, path, got, answer, status)
		}
		return true, err
	}
	if err := w.server.Write(ctx, method, path, encoded); err != nil {
		return true, err
	}
	if method == http.MethodDelete {
		delete(kept, key)
	} else {
		kept[key] = body
	}
	if step.Op == "createNode" {
		w.nodes[text(step.Node, "hostname")] = step.Node
	}
	return true, nil
}

// withPeerMAC is a router's body with another MAC of the peer.
func (w *wanted) withPeerMAC(name, mac string) map[string]any {
	body := maps.Clone(w.routers[name])
	peer, _ := body["peerRouter"].(map[string]any)
	peer = maps.Clone(peer)
	peer["mac"] = mac
	body["peerRouter"] = peer
	return body
}

// internalDrops is the declared addition of row S-5: where a router has its
// upstream rule, what goes to its internal networks is dropped before it.
func (w *wanted) internalDrops(want State) (State, error) {
	added := State{}
	for device, rules := range want {
		for _, r := range rules {
			mac, upstream := r.Field("dl_dst")
			if r.Table != 31 || r.Priority != 40500 || !upstream {
				continue
			}
			for _, router := range w.routers {
				if text(router, "mac") != mac {
					continue
				}
				for _, id := range internal(router) {
					network, ok := w.networks[id]
					if !ok {
						continue
					}
					line := fmt.Sprintf("table=31, priority=40900,ip,dl_dst=%s,nw_dst=%s actions=drop", mac, text(network, "cidr"))
					drop, err := ovs.ParseFlow(line)
					if err != nil {
						return nil, err
					}
					added[device] = append(added[device], drop)
				}
			}
		}
	}
	for device, rules := range added {
		want[device] = append(slices.Clone(want[device]), rules...)
	}
	return want, nil
}

func text(object map[string]any, key string) string {
	s, _ := object[key].(string)
	return s
}

// internal are the internal networks of a router.
func internal(router map[string]any) []string {
	var out []string
	values, _ := router["internal"].([]any)
	for _, v := range values {
		if s, ok := v.(string); ok {
			out = append(out, s)
		}
	}
	return out
}
