package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"kvnet/integration/cluster"
	"kvnet/integration/cmd/internal/stage"
	"kvnet/integration/lab"
	"kvnet/integration/relay"
)

// soon is what the cluster may take for a change of the leader.
const soon = 20 * time.Second

func (d *demo) buildLab(ctx context.Context) (err error) {
	d.Say("Build a data centre in miniature", `
Each machine is a network namespace; gateways and worker run an Open vSwitch each,
the servers are on a management network. Every switch has all servers as its
controllers, each through a relay that records what passes.

   s1 ─┐                vm1 ─┐                                 ┌─ br-int gw1 ─┐   203.0.113.5
   s2 ─┼─ management    vm2 ─┼─ br-int w1 ── provider LAN ─────┤              ├─── ext
   s3 ─┘  10.99.0.0/24  vm3 ─┘  192.168.10.0/24                └─ br-int gw2 ─┘   172.16.0.1
`)
	if d.world, err = cluster.NewWorld(ctx, cluster.Config{Binary: d.binary, AuditInterval: 2 * time.Second}); err != nil {
		return err
	}
	d.OK("%d bridges wait for controllers, %d VMs are plugged in", len(d.world.Controlled), len(cluster.VMs))
	return nil
}

func (d *demo) startServers(ctx context.Context) error {
	d.Say("Start three servers that found a cluster", "")
	began := time.Now()
	if err := d.world.Found(ctx, 3); err != nil {
		return err
	}
	for _, m := range d.world.Members {
		stage.Command("kvnet", m.Arguments()...)
	}
	leader, err := d.world.WaitLeader(ctx, soon)
	if err != nil {
		return err
	}
	d.OK("all are ready after %s", time.Since(began).Round(10*time.Millisecond))
	return d.showMembers(ctx, leader)
}

// showMembers shows what a server says of all, and who is MASTER where.
func (d *demo) showMembers(ctx context.Context, m *cluster.Member) error {
	stage.Command("curl", "-sS", "-u", "onos:rocks", "http://"+m.REST+"/kvnet/v1/members")
	views, err := m.View(ctx)
	if err != nil {
		return err
	}
	leaders := 0
	for _, v := range views {
		text, err := json.Marshal(v)
		if err != nil {
			return err
		}
		fmt.Printf("     %s\n", text)
		if v.Leader {
			leaders++
		}
	}
	if leaders != 1 {
		return fmt.Errorf("%s says that %d servers lead", m.Name, leaders)
	}
	d.OK("%s leads, and is MASTER of all %d switches", m.Name, len(d.world.Controlled))
	return nil
}

func (d *demo) configure(ctx context.Context) error {
	d.Say("Configure it with curl: each request goes to another server", "")
	for i, r := range d.world.Workload() {
		if err := d.curl(ctx, d.world.Members[i%len(d.world.Members)], r); err != nil {
			return err
		}
	}
	if err := d.world.WaitWorking(ctx); err != nil {
		return err
	}
	d.OK("all nodes are COMPLETE; a VM reaches %s through %s, and %s reaches the balancer at %s", lab.InternetIP, lab.Gateway, lab.PeerIP, cluster.BalancerIP)
	return nil
}

// curl sends a request by curl from the server's own machine.
func (d *demo) curl(ctx context.Context, m *cluster.Member, r cluster.Write) error {
	body, err := json.Marshal(r.Body)
	if err != nil {
		return fmt.Errorf("encode body: %w", err)
	}
	args := []string{"-sS", "-u", "onos:rocks", "-X", r.Method, "-H", "Content-Type: application/json", "-d", string(body), "http://" + m.REST + r.Path}
	stage.Command("curl", args...)
	out, err := m.NS.Command(ctx, "curl", append([]string{"-w", "\n%{http_code}"}, args...)...).CombinedOutput()
	if err != nil {
		var failed *exec.ExitError
		if errors.As(err, &failed) {
			return fmt.Errorf("curl: %w: %s", err, out)
		}
		return fmt.Errorf("curl: %w", err)
	}
	i := strings.LastIndex(string(out), "\n")
	status := string(out[i+1:])
	if !strings.HasPrefix(status, "2") {
		return fmt.Errorf("curl: the server answered %s: %s", status, out[:max(i, 0)])
	}
	fmt.Printf("     %s\n", status)
	return nil
}

// killLeader is what it is all about.
func (d *demo) killLeader(ctx context.Context) error {
	d.Say("The leader dies (kill -9) while packets flow", "")
	return d.replace(ctx, "killed", (*cluster.Member).Kill)
}

func (d *demo) handOver(ctx context.Context) error {
	d.Say("The leader is stopped (SIGTERM) and hands its work over", "")
	return d.replace(ctx, "asked to stop", (*cluster.Member).Stop)
}

// replace ends the leader under traffic and checks that another one leads, that no
// packet was lost and that nothing was written to a switch.
func (d *demo) replace(ctx context.Context, how string, end func(*cluster.Member) error) error {
	old, err := d.world.WaitLeader(ctx, soon)
	if err != nil {
		return err
	}
	if err := d.world.WaitQuiet(ctx); err != nil {
		return err
	}
	before, err := d.world.Record(ctx, old)
	if err != nil {
		return err
	}
	traffic, err := d.world.StartTraffic(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("     (%s is %s)\n", old.Name, how)
	mark := d.world.Mark()
	ended := make(chan error, 1)
	go func() { ended <- end(old) }()
	took, err := d.world.WaitMasters(ctx, mark, old)
	err = errors.Join(err, <-ended)
	var leader *cluster.Member
	if err == nil {
		leader, err = d.world.WaitLeader(ctx, soon)
	}
	if err == nil {
		// Long enough for a new leader's own looks at all switches.
		err = pause(ctx, 3*time.Second)
	}
	loss := traffic.Stop()
	if err != nil {
		return err
	}
	d.OK("%s leads, and was MASTER of all %d switches %s after %s was %s", leader.Name, len(d.world.Controlled), took.Round(time.Millisecond), old.Name, how)
	if err := d.unnoticed(ctx, mark, loss, before, leader); err != nil {
		return err
	}
	return d.showMembers(ctx, leader)
}

// unnoticed checks that nobody has noticed the change of the leader.
func (d *demo) unnoticed(ctx context.Context, mark cluster.Mark, loss cluster.Loss, before cluster.Record, leader *cluster.Member) error {
	if err := loss.None(); err != nil {
		return err
	}
	d.OK("packets lost: 0 of %d, ICMP and UDP through the router and ICMP to the balancer, one each %s; the longest gap was %s", loss.Sent, cluster.Pulse, loss.LongestGap.Round(time.Millisecond))
	d.OK("TCP connections broken: 0 of %d", loss.Connections)
	if written := d.world.Writes(mark); len(written) > 0 {
		return fmt.Errorf("a server wrote to the switches:\n%s", relay.Describe(written))
	}
	d.OK("rules and groups written, as the relays saw it: 0")
	after, err := d.world.Record(ctx, leader)
	if err != nil {
		return err
	}
	if differ := before.Differences(after); len(differ) > 0 {
		return fmt.Errorf("the rules differ:\n%s", strings.Join(differ, "\n"))
	}
	if err := before.CompareObjects(ctx, leader); err != nil {
		return err
	}
	rules := 0
	for _, r := range after.Rules {
		rules += len(r)
	}
	d.OK("all %d rules are as they were, and as old as they have to be; REST answers the same", rules)
	return nil
}

func (d *demo) newWork(ctx context.Context) error {
	d.Say("The two that are left do new work", "")
	if err := d.world.ProveWork(ctx); err != nil {
		return err
	}
	for _, m := range d.world.Serving() {
		d.OK("%s took a balancer with a floating IP, which answered at once; the other server removed it", m.Name)
	}
	return nil
}

// comeBack starts the dead server again.
func (d *demo) comeBack(ctx context.Context) error {
	d.Say("The dead server comes back", "")
	for _, m := range d.world.Members {
		if m.Running() {
			continue
		}
		began := time.Now()
		if err := m.Start(ctx); err != nil {
			return err
		}
		d.OK("%s is ready after %s", m.Name, time.Since(began).Round(time.Millisecond))
	}
	if err := d.world.Connect(ctx); err != nil {
		return err
	}
	leader, err := d.world.WaitLeader(ctx, soon)
	if err != nil {
		return err
	}
	return d.showMembers(ctx, leader)
}

func pause(ctx context.Context, length time.Duration) error {
	select {
	case <-time.After(length):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
