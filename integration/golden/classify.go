package golden

import (
	"strings"

	"kvnet/integration/ovs"
)

// handler says whose rule a rule is.
type handler string

// The handlers whose rules occur, by the names of the original's rules.
const (
	handlerBase         handler = "base rules (Flow-…)"
	handlerSNAT         handler = "SNAT (Snat-…)"
	handlerInternalDrop handler = "SNAT, added by kvnet (S-5)"
	handlerBalancer     handler = "load balancer (Lb-…)"
	handlerFloatingIP   handler = "floating IP (Fip-…)"
	handlerNetwork      handler = "network (Net-…)"
	handlerPeerARP      handler = "peer's ARP (Arp-P)"
	handlerOther        handler = "security group, DHCP, physical network"
	handlerUnknown      handler = "nobody"
)

// floatingMAC is the begin of the addresses that SNAT and balancers answer ARP
// with: each gateway has one of its own (row F-5), the first that of the original.
const floatingMAC = "fe:00:00:00:00:0"

// owner finds the handler of a rule by its table, priority and match.
func owner(r ovs.Flow, known addresses) handler {
	switch r.Table {
	case groupTable:
		return handlerBalancer
	case 0:
		return ownerInTable0(r)
	case 1, 5, 35, 80:
		switch {
		case r.Priority == 0 && len(r.Match) == 0, r.Table == 35 && r.Priority == 40000, r.Table == 80 && r.Priority == 10000:
			return handlerBase
		case r.Table == 5 && r.Priority == 42000, r.Table == 35 && r.Priority == 30000:
			return handlerOther
		}
	case 31, 32:
		return ownerInGatewayTable(r, known)
	case 40, 43, 44, 45:
		return handlerOther
	}
	return handlerUnknown
}

// ownerInTable0 knows table 0 of br-int (a miss only) and of br-tun.
func ownerInTable0(r ovs.Flow) handler {
	_, fromPort := r.Field("in_port")
	switch {
	case r.Priority == 0 && len(r.Match) == 0, r.Priority == 10000 && r.Actions == "NORMAL":
		return handlerBase
	case r.Priority == 30000 && !fromPort && r.Has("ip"):
		return handlerSNAT // Snat-T
	case r.Priority == 30000, r.Priority == 31000, r.Priority == 41000:
		return handlerNetwork
	case r.Priority == 32000:
		return handlerFloatingIP
	case r.Priority == 33000:
		return handlerBalancer
	}
	return handlerUnknown
}

func ownerInGatewayTable(r ovs.Flow, known addresses) handler {
	switch r.Priority {
	case 0:
		return handlerBase
	case 40500:
		return handlerSNAT
	case 40700, 40800:
		return handlerFloatingIP
	case 40900:
		return handlerInternalDrop
	case 41500, 41501, 40400:
		return handlerBalancer
	case 43000:
		return handlerNetwork
	case 41000:
		return ownerOfResponder(r, known)
	}
	return handlerUnknown
}

// ownerOfResponder knows priority 41000 of table 31, where ARP responders of all
// kinds and the routes between networks are.
func ownerOfResponder(r ovs.Flow, known addresses) handler {
	target, _ := r.Field("arp_tpa")
	switch {
	case strings.HasPrefix(r.Actions, "CONTROLLER"):
		return handlerPeerARP
	case r.Has("arp_op=1") && known.vips[target]:
		return handlerBalancer // the answer for a VIP (row L-2)
	case !r.Has("arp_op=1"), !strings.Contains(r.Actions, "set_field:"+floatingMAC):
		return handlerNetwork // Net-R1, Net-PA
	case known.snat[target]:
		return handlerSNAT
	}
	return handlerBalancer
}
