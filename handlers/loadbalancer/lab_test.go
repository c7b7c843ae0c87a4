package loadbalancer_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"kvnet/handlers/internal/handlertest"
	"kvnet/handlers/loadbalancer"
	"kvnet/model"
)

const (
	routerMAC = "fa:00:00:00:00:0a"
	vmA       = "fa:16:3e:00:00:11"
	vmB       = "fa:16:3e:00:00:12"
	groupID   = 0x6b000001
)

// newLab holds the cloud of handlertest with the balancer lb1 in net1, all decided.
func newLab(t *testing.T) *handlertest.Lab {
	l := handlertest.NewCloud(t, loadbalancer.New())
	put(l, balancer("lb1", "net1", "10.10.0.200", []string{"10.10.0.11", "10.10.0.12"}, tcp(80, 80)), groupID)
	return l
}

// put writes a balancer and decides its group.
func put(l *handlertest.Lab, lb *model.LoadBalancer, group uint32) {
	l.T.Helper()
	l.Put(lb)
	l.Put(&model.LoadBalancerStatus{Name: lb.Name, Life: l.DB.Snapshot().LoadBalancer(lb.Name).Created, GroupID: group})
}

func balancer(name, network, vip string, members []string, rules ...model.LoadBalancerRule) *model.LoadBalancer {
	lb := &model.LoadBalancer{Name: name, NetworkID: network, VIP: netip.MustParseAddr(vip), Rules: rules}
	for _, m := range members {
		lb.Members = append(lb.Members, netip.MustParseAddr(m))
	}
	return lb
}

func tcp(min, max int32) model.LoadBalancerRule {
	return model.LoadBalancerRule{Protocol: "TCP", PortRangeMin: &min, PortRangeMax: &max}
}

func udp(min, max int32) model.LoadBalancerRule {
	return model.LoadBalancerRule{Protocol: "UDP", PortRangeMin: &min, PortRangeMax: &max}
}

func other(protocol string) model.LoadBalancerRule { return model.LoadBalancerRule{Protocol: protocol} }

func floatingIP(id, router, ip, fixed string) *model.FloatingIP {
	f := &model.FloatingIP{ID: id, RouterName: router, NetworkName: "ext-net", FloatingIP: netip.MustParseAddr(ip)}
	if fixed != "" {
		f.FixedIP = netip.MustParseAddr(fixed)
	}
	return f
}

// The rules of the original's examples, as lb1 has them on gateway a<n>, b<n>.

// lbG is Lb-G with Lb-B; members are pairs of a MAC and an address.
func lbG(n int, group uint32, out string, members ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\na%d group_id=%d,type=select", n, group)
	for i := 0; i < len(members); i += 2 {
		fmt.Fprintf(&b, ",bucket=weight:1,actions=set_field:%s->eth_dst,set_field:%s->ip_dst,%s", members[i], members[i+1], out)
	}
	return b.String()
}

const tunnel = `output:"int-to-tun"`

func lbD(n int, vip, match string, group uint32) string {
	if match != "icmp" {
		protocol, port, _ := strings.Cut(match, " ")
		return fmt.Sprintf("\na%d table=32,priority=41500,%s,nw_dst=%s,tp_dst=%s,actions=set_field:%s->eth_src,group:%d", n, protocol, vip, port, routerMAC, group)
	}
	return fmt.Sprintf("\na%d table=32,priority=41500,icmp,nw_dst=%s,actions=set_field:%s->eth_src,group:%d", n, vip, routerMAC, group)
}

func lbU(n int, vip, mac, ip, match string) string {
	protocol, port, ok := strings.Cut(match, " ")
	if ok {
		port = ",tp_src=" + port
	}
	return fmt.Sprintf("\na%d table=31,priority=41500,%s,dl_src=%s,nw_src=%s%s,actions=set_field:%s->eth_src,set_field:%s->ip_src,goto_table:32", n, protocol, mac, ip, port, routerMAC, vip)
}

func lbT(n int, mac, ip, segment, data, port string) string {
	return fmt.Sprintf("\nb%d table=0,priority=33000,ip,dl_dst=%s,nw_dst=%s,actions=set_field:%s->tun_id,set_field:%s->tun_dst,output:%q", n, mac, ip, segment, data, port)
}

// wayIn and vipA are kvnet's own (rows L-1 and L-2 of docs/deviations.md).
func wayIn(n int, vip string) string {
	return fmt.Sprintf("\na%d table=31,priority=41500,ip,dl_dst=%s,nw_dst=%s,actions=goto_table:32", n, routerMAC, vip)
}

const answer = "actions=move:NXM_OF_ETH_SRC[]->NXM_OF_ETH_DST[],move:NXM_NX_ARP_SHA[]->NXM_NX_ARP_THA[],move:NXM_OF_ARP_SPA[]->NXM_OF_ARP_TPA[],set_field:2->arp_op,set_field:%[1]s->eth_src,set_field:%[1]s->arp_sha,set_field:%[2]s->arp_spa,IN_PORT"

func vipA(n int, from, vip string) string {
	return fmt.Sprintf("\na%d table=31,priority=41000,arp,%s,arp_op=1,", n, fmt.Sprintf(from, vip)) + fmt.Sprintf(answer, routerMAC, vip)
}

const fromTunnel = `in_port="int-to-tun",arp_tpa=%s`

// lbF are Lb-FD, Lb-FU and Lb-FA with the announcement, as in a router with several
// networks (row L-22).
func lbF(n int, ip, hexIP, vip string) string {
	return fmt.Sprintf("\na%d table=31,priority=41500,ip,nw_dst=%s,actions=set_field:%s->ip_dst,goto_table:32", n, ip, vip) +
		fmt.Sprintf("\na%d table=32,priority=40400,ip,dl_src=%s,nw_src=%s,actions=set_field:fe:00:00:00:00:02->eth_src,set_field:%s->ip_src,set_field:52:54:00:aa:bb:01->eth_dst,output:\"int-to-external\"", n, routerMAC, vip, ip) +
		fmt.Sprintf("\na%d table=31,priority=41000,arp,in_port=\"int-to-external\",arp_tpa=%s,arp_op=1,", n, ip) + fmt.Sprintf(answer, "fe:00:00:00:00:02", ip) +
		fmt.Sprintf("\na%d announces %s of r1 on \"int-to-external\": fffffffffffffe00000000020806"+"0001080006040002"+"fe0000000002%[3]s"+"ffffffffffff%[3]s", n, ip, hexIP)
}

// lb1Rules are all rules of lb1 on gateway a<n>, b<n>.
func lb1Rules(n int) string {
	return lbG(n, groupID, tunnel, vmA, "10.10.0.11", vmB, "10.10.0.12") + lbD(n, "10.10.0.200", "tcp 80", groupID) +
		wayIn(n, "10.10.0.200") + vipA(n, fromTunnel, "10.10.0.200") + memberA(n) + memberB(n)
}

func memberA(n int) string {
	return lbU(n, "10.10.0.200", vmA, "10.10.0.11", "tcp 80") + lbT(n, vmA, "10.10.0.11", "0x3e8", "10.0.0.1", "vxlan")
}

func memberB(n int) string {
	return lbU(n, "10.10.0.200", vmB, "10.10.0.12", "tcp 80") + lbT(n, vmB, "10.10.0.12", "0x3e8", "10.0.0.2", "vxlan")
}
