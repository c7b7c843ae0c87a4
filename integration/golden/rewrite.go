package golden

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"kvnet/integration/ovs"
	"kvnet/model"
)

// rewrite changes what ONOS held into what kvnet holds where they differ in the
// shape of rules everywhere, so that all else is still compared. Each change has a
// row in docs/deviations.md.
func (w *wanted) rewrite(want State) (State, error) {
	want, err := w.internalDrops(want)
	if err != nil {
		return nil, err
	}
	out := State{}
	for device, rules := range want {
		for _, r := range rules {
			rules, err := w.rewriteRule(r)
			if err != nil {
				return nil, err
			}
			for _, r := range rules {
				r.Actions = w.withGatewayMAC(device, r.Actions)
				slices.Sort(r.Match)
				out[device] = append(out[device], r)
			}
		}
	}
	return out, nil
}

// withGatewayMAC is row F-5: the second gateway has a MAC of its own.
func (w *wanted) withGatewayMAC(device model.DPID, actions string) string {
	if text(w.nodes["gw2"], "integrationBridge") == device.String() {
		return strings.ReplaceAll(actions, "fe:00:00:00:00:02", "fe:00:00:00:00:03")
	}
	return actions
}

func (w *wanted) rewriteRule(r ovs.Flow) ([]ovs.Flow, error) {
	group, _ := r.Field("group")
	_, group2, _ := strings.Cut(r.Actions, "group:")
	_, fromMember := r.Field("dl_src")
	switch {
	case r.Table == groupTable:
		return w.group(r, w.byGroup(group))
	case r.Table == 32 && r.Priority == 41500 && group2 != "":
		lb := w.byGroup(group2)
		r.Actions = strings.Replace(r.Actions, "group:", push(w.tag(text(lb, "networkId")))+"group:", 1)
		return ranges(r, "tp_dst", lb)
	case r.Table == 31 && r.Priority == 41500 && fromMember:
		lb := w.byVIP(r.Actions)
		return ranges(pop(r, w.tag(text(lb, "networkId"))), "tp_src", lb)
	case r.Table == 31 && r.Priority == 41500:
		return w.arrivals(r, w.routerOf(w.byVIP(r.Actions)), true), nil
	case r.Table == 31 && r.Priority == 40500 && r.Has("ip") && !strings.Contains(r.Actions, "nat)"):
		mac, _ := r.Field("dl_dst")
		if router := w.routerAt(mac); router != nil {
			external, _ := router["external"].(map[string]any)
			r.Actions = strings.Replace(r.Actions, "output:", push(w.tag(text(external, "network")))+"output:", 1)
			return w.arrivals(r, router, false), nil
		}
	case r.Table == 32 && r.Priority == 41500: // Lb-FU, row L-22
		mac, _ := r.Field("dl_src")
		if len(internal(w.routerAt(mac))) > 1 {
			r.Priority = 40400
		}
	case r.Table == 32 && r.Priority == 40500:
		ip, _ := r.Field("nw_dst")
		r.Actions = strings.Replace(r.Actions, "goto_table:", push(w.tagOf(ip))+"goto_table:", 1)
	}
	return []ovs.Flow{r}, nil
}

// group is row L-21 (buckets of tunnel networks lead to the tunnel bridge), and
// the additions of rows L-1 and L-2 for each balancer that has a group.
func (w *wanted) group(r ovs.Flow, lb map[string]any) ([]ovs.Flow, error) {
	network := text(lb, "networkId")
	from := "vlan_tci=0x0000/0x1fff"
	switch text(w.networks[network], "type") {
	case "FLAT":
	case "VLAN":
		from = fmt.Sprintf("dl_vlan=%d", w.tag(network))
	default:
		r.Actions = strings.ReplaceAll(r.Actions, "NORMAL", fmt.Sprintf("output:%d", intToTun))
		from = fmt.Sprintf("in_port=%d", intToTun)
	}
	router := w.routerOf(lb)
	vip, mac := text(lb, "vip"), text(router, "mac")
	way, err := ovs.ParseFlow(fmt.Sprintf("table=31, priority=41500,ip,dl_dst=%s,nw_dst=%s actions=goto_table:32", mac, vip))
	if err != nil {
		return nil, err
	}
	answer, err := ovs.ParseFlow(fmt.Sprintf("table=31, priority=41000,arp,%s,arp_op=1,arp_tpa=%s actions=move:NXM_OF_ETH_SRC[]->NXM_OF_ETH_DST[],move:NXM_NX_ARP_SHA[]->NXM_NX_ARP_THA[],move:NXM_OF_ARP_SPA[]->NXM_OF_ARP_TPA[],set_field:2->arp_op,set_field:%[3]s->eth_src,set_field:%[3]s->arp_sha,set_field:%[2]s->arp_spa,IN_PORT", from, vip, mac))
	if err != nil {
		return nil, err
	}
	return append([]ovs.Flow{r, answer}, w.arrivals(way, router, true)...), nil
}

// intToTun is the number of br-int's port towards br-tun in all scenarios.
const intToTun = 11

// arrivals is row S-3: where a router has VLAN networks, a rule of the gateway's
// first table becomes one for each of them, that removes the tag, and one for
// packets without a tag. outside says whether they may come from the external
// network too.
func (w *wanted) arrivals(r ovs.Flow, router map[string]any, outside bool) (rules []ovs.Flow) {
	networks := internal(router)
	if external, ok := router["external"].(map[string]any); ok && outside {
		networks = append(networks, text(external, "network"))
	}
	untagged := false
	for _, id := range networks {
		if tag := w.tag(id); tag == 0 {
			untagged = true
		} else {
			rules = append(rules, pop(r, tag))
		}
	}
	switch {
	case len(rules) == 0:
		return []ovs.Flow{r}
	case untagged:
		r.Match = append(slices.Clone(r.Match), "vlan_tci=0x0000/0x1fff")
		rules = append(rules, r)
	}
	return rules
}

// tag is the VLAN id of a network; 0: none.
func (w *wanted) tag(network string) (id int) {
	n := w.networks[network]
	if text(n, "type") == "VLAN" {
		_, _ = fmt.Sscan(text(n, "segmentId"), &id)
	}
	return id
}

// tagOf is the VLAN id of the network that an address belongs to.
func (w *wanted) tagOf(ip string) int {
	a, err := netip.ParseAddr(ip)
	if err != nil {
		return 0
	}
	for id, n := range w.networks {
		if p, err := netip.ParsePrefix(text(n, "cidr")); err == nil && p.Contains(a) {
			return w.tag(id)
		}
	}
	return 0
}

func push(tag int) string {
	if tag == 0 {
		return ""
	}
	return fmt.Sprintf("push_vlan:0x8100,set_field:%d->vlan_vid,", 0x1000|tag)
}

func pop(r ovs.Flow, tag int) ovs.Flow {
	if tag != 0 {
		r.Match = append(slices.Clone(r.Match), fmt.Sprintf("dl_vlan=%d", tag))
		r.Actions = "pop_vlan," + r.Actions
	}
	return r
}

func (w *wanted) byGroup(name string) map[string]any {
	name, _, _ = strings.Cut(strings.TrimPrefix(name, "G("), ")")
	return w.lbs[name]
}

// byVIP is the balancer whose VIP actions write into a packet.
func (w *wanted) byVIP(actions string) map[string]any {
	for _, lb := range w.lbs {
		if strings.Contains(actions, "set_field:"+text(lb, "vip")+"->") {
			return lb
		}
	}
	return nil
}

func (w *wanted) routerAt(mac string) map[string]any {
	for _, router := range w.routers {
		if text(router, "mac") == mac {
			return router
		}
	}
	return nil
}

func (w *wanted) routerOf(lb map[string]any) map[string]any {
	for _, router := range w.routers {
		if slices.Contains(internal(router), text(lb, "networkId")) {
			return router
		}
	}
	return nil
}

// ranges is row L-12: a rule for the first port of a range becomes one for each
// mask of the range.
func ranges(r ovs.Flow, field string, lb map[string]any) ([]ovs.Flow, error) {
	value, ok := r.Field(field)
	if !ok {
		return []ovs.Flow{r}, nil
	}
	rules, _ := lb["rules"].([]any)
	for _, x := range rules {
		rule, _ := x.(map[string]any)
		min, _ := rule["portRangeMin"].(float64)
		max, _ := rule["portRangeMax"].(float64)
		if min == max || fmt.Sprint(min) != value || !r.Has(strings.ToLower(text(rule, "protocol"))) {
			continue
		}
		var out []ovs.Flow
		for _, mask := range masks(0, 1<<16, int(min), int(max)+1) {
			ported := r
			ported.Match = slices.Clone(r.Match)
			ported.Match[slices.Index(ported.Match, field+"="+value)] = field + "=" + mask
			out = append(out, ported)
		}
		return out, nil
	}
	return []ovs.Flow{r}, nil
}

// masks covers the numbers from min to end by halving the block from low to high.
func masks(low, high, min, end int) []string {
	switch {
	case end <= low || high <= min:
		return nil
	case min <= low && high <= end && high-low == 1:
		return []string{fmt.Sprint(low)}
	case min <= low && high <= end:
		return []string{fmt.Sprintf("0x%x/0x%x", low, 0x10000-(high-low))}
	}
	middle := (low + high) / 2
	return append(masks(low, middle, min, end), masks(middle, high, min, end)...)
}
