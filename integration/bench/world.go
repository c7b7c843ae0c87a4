package bench

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"time"

	"kvnet/integration/lab"
	"kvnet/integration/relay"
	"kvnet/integration/server"
)

// world is a lab of real switches with a real server: one network behind router
// r1, which leaves through gw1; gw2 stands by.
type world struct {
	*lab.Flat
	server *server.Server
	relay  *relay.Relay
}

// members are the VMs of the network flat1; the first has a machine.
const members = 8

const memberMachine = "vm1"

func memberIP(i int) string  { return fmt.Sprintf("192.168.10.%d", 11+i) }
func memberMAC(i int) string { return fmt.Sprintf("fa:16:3e:00:00:%02x", 0x11+i) }

// newWorld builds the lab, starts the server and configures everything.
func (b *Bench) newWorld(ctx context.Context) (w *world, err error) {
	w = &world{}
	if w.Flat, err = lab.NewFlat(ctx, lab.FlatConfig{Workers: 1, Gateways: 2}); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.close())
		}
	}()
	if w.server, err = server.New(server.Config{Binary: b.Binary, Dir: filepath.Join(w.Dir, "server"), Name: "bench"}); err != nil {
		return nil, err
	}
	if err := w.server.Start(ctx); err != nil {
		return nil, err
	}
	w.relay = relay.New(w.server.OpenFlow)
	for _, c := range w.Controlled {
		if _, err := w.relay.Listen(c.Name(), "unix", c.Socket); err != nil {
			return nil, err
		}
		if err := w.Node(c.Node).Reconnect(ctx, c.Bridge); err != nil {
			return nil, err
		}
	}
	if err := w.relay.WaitConnected(ctx); err != nil {
		return nil, err
	}
	if _, err := w.AddVM(ctx, lab.Worker(1), lab.HostConfig{Name: memberMachine, MAC: memberMAC(0), Address: memberIP(0) + "/24", Gateway: "192.168.10.1"}); err != nil {
		return nil, err
	}
	return w, w.configure(ctx)
}

func (w *world) configure(ctx context.Context) error {
	if err := w.server.Write(ctx, http.MethodPost, server.NodePath, w.NodeBody()); err != nil {
		return err
	}
	for _, n := range []map[string]any{network("flat1", "192.168.10"), network("ext-net", "172.16.0")} {
		if err := w.server.Write(ctx, http.MethodPost, server.NetworkingPath+"/network", n); err != nil {
			return err
		}
	}
	for i := range members {
		if err := w.server.Write(ctx, http.MethodPost, server.NetworkingPath+"/port", map[string]any{
			"vmName": fmt.Sprintf("vm%d", i+1), "networkId": "flat1", "macAddress": memberMAC(i), "ipAddress": memberIP(i),
			"deviceId": lab.BridgeDPID(lab.Worker(1), lab.BrInt).String(),
		}); err != nil {
			return err
		}
	}
	for _, node := range append(w.Gateways, w.Workers...) {
		if err := eventually(ctx, node+" is COMPLETE", func() (bool, error) {
			state, err := w.server.NodeState(ctx, node)
			return state == "COMPLETE", err
		}); err != nil {
			return err
		}
	}
	return w.route(ctx, http.MethodPost, server.NetworkingPath+"/router", lab.Gateway)
}

// route writes router r1 with the wish for a gateway.
func (w *world) route(ctx context.Context, method, path, gateway string) error {
	return w.server.Write(ctx, method, path, map[string]any{
		"name": "r1", "mac": "fa:00:00:00:00:0a", "enableSnat": true, "internal": []string{"flat1"}, "gateway": gateway,
		"external":   map[string]any{"ip": "172.16.0.100", "network": "ext-net"},
		"peerRouter": map[string]any{"ip": lab.PeerIP},
	})
}

func (w *world) close() error {
	var errs []error
	if w.server != nil {
		errs = append(errs, w.server.Stop(), w.server.CheckLog())
	}
	if w.relay != nil {
		w.relay.Close()
	}
	return errors.Join(append(errs, w.Close())...)
}

// eventually waits until check says yes.
func eventually(ctx context.Context, what string, check func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		ok, err := check()
		if ok && err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait until %s: %w", what, errors.Join(context.Cause(ctx), err))
		case <-tick.C:
		}
	}
}
