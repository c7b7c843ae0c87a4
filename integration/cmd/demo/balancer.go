package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"time"

	"kvnet/integration/cmd/internal/stage"
	"kvnet/integration/lab"
	"kvnet/integration/netns"
	"kvnet/integration/probe"
	"kvnet/integration/server"
)

const (
	balancerName = "web"
	balancerVIP  = "192.168.10.250"
	balancerFIP  = "172.16.0.150"
	// connections is how many a step makes.
	connections = 40
	// held is how many connections stay open while members change.
	held = 24
	// pulse is the time between two pings.
	pulse = 10 * time.Millisecond
	// longestGap is what may pass between two answers while members change, and
	// longestDeath while a gateway dies.
	longestGap, longestDeath = time.Second / 2, time.Second
)

var floating = netip.MustParseAddrPort(balancerFIP + ":80")

// web is the balancer with these VMs as members.
func web(members ...int) balancerBody {
	b := balancerBody{balancerName, balancerVIP, "flat1", nil, []ruleBody{{"TCP", 80, 80}, {Protocol: "ICMP"}}}
	for _, i := range members {
		b.Members = append(b.Members, vms[i].ip)
	}
	return b
}

// showBalancer makes a balancer with a floating IP and connects to it.
func (d *demo) showBalancer(ctx context.Context) error {
	d.Say("A load balancer with a floating IP", "")
	d.services = map[string]*probe.Service{}
	for _, v := range vms {
		s, err := probe.ServeTCP(d.lab.Host(v.name).NS, netip.MustParseAddrPort(v.ip+":80"))
		if err != nil {
			return err
		}
		d.services[v.name] = s
	}
	if err := d.write(ctx, http.MethodPost, server.NetworkingPath+"/loadbalancer", web(0, 1)); err != nil {
		return err
	}
	if err := d.write(ctx, http.MethodPost, server.NetworkingPath+"/floating-ip",
		floatingIPBody{"web-fip", routerName, "ext", balancerFIP, balancerVIP}); err != nil {
		return err
	}
	if err := d.awaitGroup(ctx, lab.Gateway, web(0, 1)); err != nil {
		return err
	}
	if err := probe.Ping(ctx, d.lab.Host(lab.External).NS, floating.Addr()); err != nil {
		return err
	}
	return d.connect(ctx, 0, 1)
}

// awaitGroup waits until a gateway has the balancer's group with its members.
func (d *demo) awaitGroup(ctx context.Context, gateway string, b balancerBody) error {
	want := slices.Sorted(slices.Values(b.Members))
	return await(ctx, "the balancer's group on "+gateway, func() error {
		groups, err := d.lab.Node(gateway).Groups(ctx, lab.BrInt)
		if err != nil {
			return err
		}
		if len(groups) != 1 || !slices.Equal(groups[0].Targets(), want) {
			return fmt.Errorf("the groups are %v", groups)
		}
		return nil
	})
}

// connect makes connections from outside, each of which a member must answer.
func (d *demo) connect(ctx context.Context, members ...int) error {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	before := map[string]int{}
	for name, s := range d.services {
		before[name] = len(s.Peers())
	}
	for range connections {
		seen, err := probe.AskTCP(ctx, d.lab.Host(lab.External).NS, 0, floating)
		if err != nil {
			return err
		}
		if seen.Addr().String() != lab.PeerIP {
			return fmt.Errorf("a member saw the client as %s, want its own address %s", seen, lab.PeerIP)
		}
	}
	text := ""
	for i, v := range vms {
		n := len(d.services[v.name].Peers()) - before[v.name]
		switch {
		case slices.Contains(members, i) && n == 0:
			return fmt.Errorf("%s is a member and got no connection", v.name)
		case !slices.Contains(members, i) && n > 0:
			return fmt.Errorf("%s is no member and got %d connections", v.name, n)
		}
		text += fmt.Sprintf(" %s %d", v.name, n)
	}
	d.OK("%d connections from %s to %s, all answered:%s", connections, lab.PeerIP, floating, text)
	return nil
}

// showMembers adds a member and removes one under traffic.
func (d *demo) showMembers(ctx context.Context) error {
	d.Say("A member is added and one removed under traffic", "")
	ext := d.lab.Host(lab.External).NS
	ping, err := probe.StartPing(ext, floating.Addr(), pulse)
	if err != nil {
		return err
	}
	err = d.changeMembers(ctx, ext)
	r := ping.Stop()
	if err != nil {
		return err
	}
	if r.LongestGap > longestGap || r.Answered == 0 {
		return fmt.Errorf("pings meanwhile: %s", r)
	}
	d.OK("pings of %s meanwhile: %d of %d lost, one each %s; the longest gap was %s", balancerFIP, len(r.Lost), r.Sent, pulse, r.LongestGap.Round(time.Millisecond))
	return nil
}

// changeMembers changes the members and looks at new and open connections.
func (d *demo) changeMembers(ctx context.Context, ext *netns.NS) error {
	var open []*probe.Connection
	defer func() {
		for _, c := range open {
			_ = c.Close()
		}
	}()
	hold := func() error {
		for len(open) < held {
			c, err := probe.OpenTCP(ctx, ext, floating)
			if err != nil {
				return err
			}
			open = append(open, c)
		}
		return nil
	}
	for _, step := range []struct {
		what    string
		members []int
	}{{"vm3 is added", []int{0, 1, 2}}, {"vm1 is removed", []int{1, 2}}} {
		if err := hold(); err != nil {
			return err
		}
		b := web(step.members...)
		if err := d.write(ctx, http.MethodPut, server.ObjectPath("loadbalancer", balancerName), b); err != nil {
			return err
		}
		if err := d.awaitGroup(ctx, lab.Gateway, b); err != nil {
			return err
		}
		if err := d.connect(ctx, step.members...); err != nil {
			return err
		}
		if open = alive(open); len(open) == 0 {
			return fmt.Errorf("%s: no connection lives on", step.what)
		}
		d.OK("%s: %d of %d open connections live on; the hash leads the others to another member now", step.what, len(open), held)
	}
	return nil
}

// alive closes the connections that no longer answer and returns the others.
func alive(open []*probe.Connection) (still []*probe.Connection) {
	answers := make([]error, len(open))
	var asking sync.WaitGroup
	for i, c := range open {
		asking.Go(func() { answers[i] = c.Echo("still there?", time.Second) })
	}
	asking.Wait()
	for i, c := range open {
		if answers[i] == nil {
			still = append(still, c)
		} else {
			_ = c.Close()
		}
	}
	return still
}

// showHealing edits the balancer's group by hand.
func (d *demo) showHealing(ctx context.Context) error {
	d.Say("A group that somebody edits by hand heals", "")
	gateway := d.lab.Node(lab.Gateway)
	groups, err := gateway.Groups(ctx, lab.BrInt)
	if err != nil {
		return err
	}
	if len(groups) != 1 {
		return fmt.Errorf("there are %d groups, want one", len(groups))
	}
	id := "group_id=" + groups[0].ID
	for _, edit := range [][]string{{"mod-group", id + ",type=select,bucket=actions=drop"}, {"del-groups", id}} {
		stage.Command("ovs-ofctl", "-O", "OpenFlow13", edit[0], lab.BrInt, edit[1])
		if _, err := gateway.Ofctl(ctx, nil, edit[0], lab.BrInt, edit[1]); err != nil {
			return err
		}
		began := time.Now()
		if err := d.awaitGroup(ctx, lab.Gateway, web(1, 2)); err != nil {
			return err
		}
		d.OK("the group is as before after %s", time.Since(began).Round(time.Millisecond))
		if err := probe.Ping(ctx, d.lab.Host(lab.External).NS, floating.Addr()); err != nil {
			return err
		}
	}
	return d.connect(ctx, 1, 2)
}

// showFailOver kills the gateway.
func (d *demo) showFailOver(ctx context.Context) error {
	const second = "gw2"
	d.Say("The gateway dies, and the other one serves", "")
	out, err := probe.StartPing(d.lab.Host(vms[0].name).NS, internet, pulse)
	if err != nil {
		return err
	}
	in, err := probe.StartPing(d.lab.Host(lab.External).NS, floating.Addr(), pulse)
	if err != nil {
		out.Stop()
		return err
	}
	err = await(ctx, "answers", func() error {
		if out.Answered() < 50 || in.Answered() < 50 {
			return errors.New("too few yet")
		}
		return nil
	})
	if err == nil {
		fmt.Printf("     (ovs-vswitchd of %s is killed)\n", lab.Gateway)
		err = d.dieAndMove(ctx, second)
	}
	outward, inward := out.Stop(), in.Stop()
	if err != nil {
		return err
	}
	for name, r := range map[string]probe.Result{vms[0].name + " → " + internet.String(): outward, lab.PeerIP + " → " + balancerFIP: inward} {
		if r.LongestGap > longestDeath || time.Duration(len(r.Lost))*pulse > longestDeath {
			return fmt.Errorf("%s: %s", name, r)
		}
		d.OK("%s: %d of %d pings lost, one each %s; the gap was %s", name, len(r.Lost), r.Sent, pulse, r.LongestGap.Round(time.Millisecond))
	}
	return nil
}

// dieAndMove kills the gateway and waits until the other one serves.
func (d *demo) dieAndMove(ctx context.Context, other string) error {
	if err := d.lab.Node(lab.Gateway).KillSwitch(); err != nil {
		return err
	}
	if err := await(ctx, "another gateway", func() error {
		r, err := d.server.Router(ctx, routerName)
		if err == nil && r.Gateway != other {
			err = fmt.Errorf("it is %s", r.Gateway)
		}
		return err
	}); err != nil {
		return err
	}
	if err := d.awaitGroup(ctx, other, web(1, 2)); err != nil {
		return err
	}
	d.OK("%s is the gateway of %s now", other, routerName)
	return d.connect(ctx, 1, 2)
}
