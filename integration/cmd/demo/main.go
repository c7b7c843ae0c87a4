// Command demo shows kvnet at work on one machine: it builds a small data centre
// of namespaces and real switches, starts a server, configures it with curl as a
// user would, and sends packets. It checks everything that it shows and removes
// all of it in the end.
package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"kvnet/integration/cmd/internal/stage"
	"kvnet/integration/lab"
	"kvnet/integration/probe"
	"kvnet/integration/relay"
	"kvnet/integration/server"
)

func main() {
	d := &demo{}
	d.Main(func(binary string) []func(context.Context) error {
		return []func(context.Context) error{
			d.buildLab,
			func(ctx context.Context) error { return d.startServer(ctx, binary) },
			d.configure,
			d.showPeer,
			d.showPackets,
			func(ctx context.Context) error {
				return d.showRules(ctx, "The rules of the router", "snat/"+routerName)
			},
			d.showBalancer,
			d.showMembers,
			func(ctx context.Context) error {
				return d.showRules(ctx, "The rules and the group of the balancer", "lb/"+balancerName)
			},
			d.showHealing,
			d.showFailOver,
		}
	}, d.close)
}

// demo is what has been built so far.
type demo struct {
	stage.Stage
	lab    *lab.Flat
	server *server.Server
	relay  *relay.Relay

	services map[string]*probe.Service // of the balancer's members, by VM
}

// close stops and removes what there is.
func (d *demo) close() error {
	var errs []error
	for _, s := range d.services {
		errs = append(errs, s.Close())
	}
	if d.server != nil {
		errs = append(errs, d.server.Stop(), d.server.CheckLog())
	}
	if d.relay != nil {
		d.relay.Close()
	}
	if d.lab != nil {
		errs = append(errs, d.lab.Close())
	}
	return errors.Join(errs...)
}

func (d *demo) buildLab(ctx context.Context) (err error) {
	d.Say("Build a data centre in miniature", `
Each machine is a network namespace; gateways and workers run an Open vSwitch each.

   vm1 ─┬ br-int w1 ─┐                  ┌─ br-int gw1 ── br-external ─┐    203.0.113.5
   vm3 ─┘            ├── provider LAN ──┤                             ├──── ext
   vm2 ── br-int w2 ─┘                  └─ br-int gw2 ── br-external ─┘   172.16.0.1
        192.168.10.0/24                                  172.16.0.0/24
`)
	if d.lab, err = lab.NewFlat(ctx, lab.FlatConfig{Workers: 2, Gateways: 2, ControlledPhysical: true}); err != nil {
		return err
	}
	for _, v := range vms {
		if _, err := d.lab.AddVM(ctx, v.worker, lab.HostConfig{Name: v.name, MAC: v.mac, Address: v.ip + "/24", Gateway: networkGateway}); err != nil {
			return err
		}
	}
	// Linux keeps a young entry of its ARP table for 1 s against a later answer. When
	// a gateway dies the gap is to be kvnet's alone.
	if err := d.lab.Host(lab.External).Command(ctx, "sysctl", "-q", "net.ipv4.neigh.eth0.locktime=0").Run(); err != nil {
		return fmt.Errorf("configure ext: %w", err)
	}
	d.OK("%d bridges wait for a controller, %d VMs are plugged in", len(d.lab.Controlled), len(vms))
	return nil
}

func (d *demo) startServer(ctx context.Context, binary string) (err error) {
	d.Say("Start the server", "")
	if binary, err = filepath.Abs(binary); err != nil {
		return fmt.Errorf("find the binary: %w", err)
	}
	if d.server, err = server.New(server.Config{Binary: binary, Dir: filepath.Join(d.lab.Dir, "server"), Name: "demo", AuditInterval: 2 * time.Second}); err != nil {
		return err
	}
	stage.Command("kvnet", d.server.Arguments()...)
	if err := d.server.Start(ctx); err != nil {
		return err
	}
	d.OK("it is ready: REST at http://%s, OpenFlow at %s, metrics at http://%s/metrics", d.server.REST, d.server.OpenFlow, d.server.Metrics)

	// The switches are in namespaces that have no way to the server; the relay
	// is their way. All of it stays on this machine.
	d.relay = relay.New(d.server.OpenFlow)
	for _, b := range d.lab.Controlled {
		if _, err := d.relay.Listen(b.Name(), "unix", b.Socket); err != nil {
			return err
		}
		if err := d.lab.Node(b.Node).Reconnect(ctx, b.Bridge); err != nil {
			return err
		}
	}
	if err := d.relay.WaitConnected(ctx); err != nil {
		return err
	}
	d.OK("the switches are connected")
	return nil
}
