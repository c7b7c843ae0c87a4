package snat_test

import (
	"fmt"
	"strings"
	"testing"

	"kvnet/handlers/internal/handlertest"
	"kvnet/handlers/snat"
)

func newLab(t *testing.T) *handlertest.Lab { return handlertest.NewCloud(t, snat.New()) }

// The rules of the original's examples, with the zone and the drops of kvnet.

const responderActions = `actions=move:NXM_OF_ETH_SRC[]->NXM_OF_ETH_DST[],move:NXM_NX_ARP_SHA[]->NXM_NX_ARP_THA[],move:NXM_OF_ARP_SPA[]->NXM_OF_ARP_TPA[],set_field:2->arp_op,set_field:fe:00:00:00:00:02->eth_src,set_field:fe:00:00:00:00:02->arp_sha,set_field:%[2]s->arp_spa,IN_PORT`

// snatA is Snat-A on gateway a<n> with its announcement.
func snatA(n int, ip string, hexIP string) string {
	return fmt.Sprintf(`
		a%[1]d table=31,priority=41000,arp,in_port="int-to-external",arp_tpa=%[2]s,arp_op=1,`+responderActions+`
		a%[1]d announces %[2]s of r1 on "int-to-external": fffffffffffffe00000000020806`+`0001080006040002`+`fe0000000002%[3]s`+`ffffffffffff%[3]s`, n, ip, hexIP)
}

func snatU(n int, ip string, zone int) string {
	return fmt.Sprintf(`
		a%d table=31,priority=40500,ip,dl_dst=fa:00:00:00:00:0a,actions=ct(commit,zone=%d,nat(src=%s:1025-65535)),set_field:52:54:00:aa:bb:01->eth_dst,set_field:fe:00:00:00:00:02->eth_src,output:"int-to-external"`, n, zone, ip)
}

func snatD(n int, ip string, zone int) string {
	return fmt.Sprintf(`
		a%d table=31,priority=40500,ip,nw_dst=%s,actions=set_field:fa:00:00:00:00:0a->eth_src,ct(table=32,zone=%d,nat)`, n, ip, zone)
}

func drops(n int, prefixes ...string) string {
	var b strings.Builder
	for _, p := range prefixes {
		fmt.Fprintf(&b, "\na%d table=31,priority=40900,ip,dl_dst=fa:00:00:00:00:0a,nw_dst=%s,actions=drop", n, p)
	}
	return b.String()
}

func snatP(n int, ip, mac string) string {
	return fmt.Sprintf(`
		a%d table=32,priority=40500,ip,dl_src=fa:00:00:00:00:0a,nw_dst=%s,actions=set_field:%s->eth_dst,goto_table:80`, n, ip, mac)
}

func snatT(n int, ip, mac, segment, data, port string) string {
	return fmt.Sprintf(`
		b%d table=0,priority=30000,ip,dl_dst=%s,nw_dst=%s,actions=set_field:%s->tun_id,set_field:%s->tun_dst,output:"%s"`, n, mac, ip, segment, data, port)
}

const (
	vmA = "fa:16:3e:00:00:11"
	vmB = "fa:16:3e:00:00:12"
	vmF = "fa:16:3e:00:00:31"
)

// r1Rules are the rules of r1 itself on gateway a<n>.
func r1Rules(n int) string {
	return snatA(n, "172.16.0.100", "ac100064") + snatU(n, "172.16.0.100", 1) + snatD(n, "172.16.0.100", 1) + drops(n, "192.168.10.0/24", "10.10.0.0/24")
}

// portRules are the rules of r1's ports on gateway a<n>, b<n>.
func portRules(n int) string {
	return snatP(n, "10.10.0.11", vmA) + snatT(n, "10.10.0.11", vmA, "0x3e8", "10.0.0.1", "vxlan") +
		snatP(n, "10.10.0.12", vmB) + snatT(n, "10.10.0.12", vmB, "0x3e8", "10.0.0.2", "vxlan") +
		snatP(n, "192.168.10.31", vmF)
}
