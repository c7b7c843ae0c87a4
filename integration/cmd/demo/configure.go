package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"time"

	"kvnet/integration/cluster"
	"kvnet/integration/cmd/internal/stage"
	"kvnet/integration/lab"
	"kvnet/integration/server"
)

// What the demo configures.
const (
	routerName     = "r1"
	routerMAC      = "fa:00:00:00:00:0a"
	routerIP       = "172.16.0.100"
	networkGateway = "192.168.10.1"
)

var vms = []struct{ name, worker, mac, ip string }{
	{"vm1", "w1", "fa:16:3e:00:00:31", "192.168.10.31"},
	{"vm2", "w2", "fa:16:3e:00:00:32", "192.168.10.32"},
	{"vm3", "w1", "fa:16:3e:00:00:33", "192.168.10.33"},
}

// The bodies of the REST calls, in the order in which one reads them.
type (
	networkBody struct {
		ID           string `json:"networkId"`
		Type         string `json:"type"`
		Name         string `json:"name"`
		MTU          int    `json:"mtu"`
		CIDR         string `json:"cidr"`
		GatewayIP    string `json:"gatewayIp"`
		DefaultRoute bool   `json:"defaultRoute"`
		IPPool       ipPool `json:"ipPool"`
	}
	ipPool struct {
		Start string `json:"start"`
		End   string `json:"end"`
	}
	routerBody struct {
		Name       string       `json:"name"`
		MAC        string       `json:"mac"`
		EnableSNAT bool         `json:"enableSnat"`
		Gateway    string       `json:"gateway"`
		Internal   []string     `json:"internal"`
		External   externalBody `json:"external"`
		Peer       peerBody     `json:"peerRouter"`
	}
	externalBody struct {
		IP      string `json:"ip"`
		Network string `json:"network"`
	}
	peerBody struct {
		IP string `json:"ip"`
	}
	portBody struct {
		VMName    string `json:"vmName"`
		NetworkID string `json:"networkId"`
		MAC       string `json:"macAddress"`
		IP        string `json:"ipAddress"`
		DeviceID  string `json:"deviceId"`
	}
	balancerBody struct {
		Name      string     `json:"name"`
		VIP       string     `json:"vip"`
		NetworkID string     `json:"networkId"`
		Members   []string   `json:"members"`
		Rules     []ruleBody `json:"rules"`
	}
	ruleBody struct {
		Protocol string `json:"protocol"`
		Min      int    `json:"portRangeMin,omitempty"`
		Max      int    `json:"portRangeMax,omitempty"`
	}
	floatingIPBody struct {
		ID          string `json:"id"`
		RouterName  string `json:"routerName"`
		NetworkName string `json:"networkName"`
		FloatingIP  string `json:"floatingIp"`
		FixedIP     string `json:"fixedIp"`
	}
)

func flat(id, net string) networkBody {
	return networkBody{id, "FLAT", id, 1500, net + ".0/24", net + ".1", true, ipPool{net + ".10", net + ".200"}}
}

// configure does by curl what a user would do.
func (d *demo) configure(ctx context.Context) error {
	d.Say("Configure it with curl", "")
	type write struct {
		path string
		body any
	}
	writes := []write{
		{server.NodePath, d.lab.NodeBody()},
		{server.NetworkingPath + "/network", flat("ext", "172.16.0")},
		{server.NetworkingPath + "/network", flat("flat1", "192.168.10")},
		{server.NetworkingPath + "/router", routerBody{
			routerName, routerMAC, true, lab.Gateway, []string{"flat1"}, externalBody{routerIP, "ext"}, peerBody{lab.PeerIP},
		}},
	}
	for _, v := range vms {
		writes = append(writes, write{server.NetworkingPath + "/port", portBody{
			v.name, "flat1", v.mac, v.ip, lab.BridgeDPID(v.worker, lab.BrInt).String(),
		}})
	}
	for _, w := range writes {
		if err := d.write(ctx, http.MethodPost, w.path, w.body); err != nil {
			return err
		}
	}
	return d.awaitNodes(ctx)
}

// write sends a body by curl.
func (d *demo) write(ctx context.Context, method, path string, body any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("encode body: %w", err)
	}
	_, err = d.curl(ctx, method, path, string(text))
	return err
}

// curl shows a curl command, runs it, and shows and returns what came back.
func (d *demo) curl(ctx context.Context, method, path, body string) (string, error) {
	args := []string{"-sS", "-u", "onos:rocks"}
	if method != http.MethodGet {
		args = append(args, "-X", method, "-H", "Content-Type: application/json", "-d", body)
	}
	args = append(args, "http://"+d.server.REST+path)
	stage.Command("curl", args...)

	const separator = "\n"
	out, err := exec.CommandContext(ctx, "curl", append([]string{"-w", separator + "%{http_code}"}, args...)...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("curl: %w: %s", err, out)
	}
	i := strings.LastIndex(string(out), separator)
	answer, status := string(out[:i]), string(out[i+len(separator):])
	if !strings.HasPrefix(status, "2") {
		return "", fmt.Errorf("curl: the server answered %s: %s", status, answer)
	}
	if method != http.MethodGet {
		fmt.Printf("     %s\n", status)
	}
	return answer, nil
}

// awaitNodes waits until kvnet has found all bridges of all nodes.
func (d *demo) awaitNodes(ctx context.Context) error {
	for _, node := range slices.Concat(d.lab.Gateways, d.lab.Workers) {
		if err := await(ctx, "node "+node, func() error {
			state, err := d.server.NodeState(ctx, node)
			if err == nil && state != "COMPLETE" {
				err = fmt.Errorf("it is %s", state)
			}
			return err
		}); err != nil {
			return err
		}
		d.OK("node %s is COMPLETE", node)
	}
	return nil
}

// await calls check until it returns nil, 15 s long.
func await(ctx context.Context, what string, check func() error) error {
	return cluster.Await(ctx, 15*time.Second, what, check)
}
