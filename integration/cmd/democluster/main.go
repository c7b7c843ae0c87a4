// Command democluster shows a cluster of kvnet servers on one machine: it builds a
// small data centre of namespaces and real switches, starts three servers on
// machines of their own, sends packets through a router and a balancer, kills the
// leader, and shows that nobody has noticed. It checks everything that it shows and
// removes all of it in the end.
package main

import (
	"context"

	"kvnet/integration/cluster"
	"kvnet/integration/cmd/internal/stage"
)

func main() {
	d := &demo{}
	d.Main(func(binary string) []func(context.Context) error {
		d.binary = binary
		return []func(context.Context) error{
			d.buildLab,
			d.startServers,
			d.configure,
			d.killLeader,
			d.newWork,
			d.comeBack,
			d.handOver,
		}
	}, d.close)
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
