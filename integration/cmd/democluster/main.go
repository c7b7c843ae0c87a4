// Command democluster shows a cluster of kvnet servers on one machine: it builds a
// small data centre of namespaces and real switches, starts three servers on
// machines of their own, sends packets through a router and a balancer, kills the
// leader, and shows that nobody has noticed. It checks everything that it shows and
// removes all of it in the end.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"kvnet/integration/cluster"
	"kvnet/integration/cmd/internal/stage"
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

	d := &demo{binary: binary}
	began := time.Now()
	defer func() {
		d.Say("Clean up", "")
		err = errors.Join(err, d.close())
		if err == nil {
			fmt.Printf("\nAll of it was right. It took %s.\n", time.Since(began).Round(time.Second))
		}
	}()
	for _, step := range []func(context.Context) error{
		d.buildLab,
		d.startServers,
		d.configure,
		d.killLeader,
		d.newWork,
		d.comeBack,
		d.handOver,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// demo is what has been built so far.
type demo struct {
	stage.Stage
	binary string
	world  *cluster.World
}

func (d *demo) close() error {
	if d.world == nil {
		return nil
	}
	return d.world.Close()
}
