// Command demo shows kvnet at work on one machine: it builds a small data centre
// of namespaces and real switches, starts a server, configures it with curl as a
// user would, and sends packets. It checks everything that it shows and removes
// all of it in the end.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"kvnet/integration/lab"
	"kvnet/integration/relay"
	"kvnet/integration/server"
)

// limit is the time after which the demo gives up.
const limit = 110 * time.Second

func main() {
	binary := flag.String("binary", "bin/kvnet", "the kvnet binary to show")
	flag.Parse()
	if os.Geteuid() != 0 {
		fmt.Fprintln(os.Stderr, "The demo makes network namespaces and switches, which needs root: run it as root.")
		os.Exit(1)
	}
	if err := run(*binary); err != nil {
		fmt.Fprintf(os.Stderr, "\nThe demo failed: %v\n", err)
		os.Exit(1)
	}
}

func run(binary string) (err error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()

	d := &demo{}
	began := time.Now()
	defer func() {
		d.say("Clean up", "")
		err = errors.Join(err, d.close())
		if err == nil {
			fmt.Printf("\nAll of it was right. It took %s.\n", time.Since(began).Round(time.Second))
		}
	}()
	for _, step := range []func(context.Context) error{
		d.buildLab,
		func(ctx context.Context) error { return d.startServer(ctx, binary) },
		d.configure,
		d.showPeer,
		d.showPackets,
		d.showRules,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// demo is what has been built so far.
type demo struct {
	lab    *lab.Flat
	server *server.Server
	relay  *relay.Relay
	step   int
}

// close stops and removes what there is.
func (d *demo) close() error {
	var errs []error
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
	d.say("Build a data centre in miniature", `
Each machine is a network namespace; gw1 and w1 run an Open vSwitch of their own.

   vm1 ─┐                                                     203.0.113.5
   vm2 ─┴ br-int w1 ── provider LAN ── br-int gw1 ── br-external ── ext
  192.168.10.0/24                                   172.16.0.0/24  172.16.0.1
`)
	if d.lab, err = lab.NewFlat(ctx, lab.FlatConfig{Workers: 1, ControlledPhysical: true}); err != nil {
		return err
	}
	for _, v := range vms {
		if _, err := d.lab.AddVM(ctx, v.worker, lab.HostConfig{Name: v.name, MAC: v.mac, Address: v.ip + "/24", Gateway: networkGateway}); err != nil {
			return err
		}
	}
	d.ok("%d bridges wait for a controller, %d VMs are plugged in", len(d.lab.Controlled), len(vms))
	return nil
}

func (d *demo) startServer(ctx context.Context, binary string) (err error) {
	d.say("Start the server", "")
	if binary, err = filepath.Abs(binary); err != nil {
		return fmt.Errorf("find the binary: %w", err)
	}
	if d.server, err = server.New(server.Config{Binary: binary, Dir: filepath.Join(d.lab.Dir, "server"), Name: "demo"}); err != nil {
		return err
	}
	command("kvnet", d.server.Arguments()...)
	if err := d.server.Start(ctx); err != nil {
		return err
	}
	d.ok("it is ready: REST at http://%s, OpenFlow at %s, metrics at http://%s/metrics", d.server.REST, d.server.OpenFlow, d.server.Metrics)

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
	d.ok("the switches are connected")
	return nil
}
