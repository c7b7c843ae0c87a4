package flow

// Tables of the gateway's and worker's integration bridge (br-int) and of br-tun,
// by the names that ONOS gives them.
const (
	TableStatInbound  uint8 = 0  // STAT_INBOUND_TABLE
	TableVTapInbound  uint8 = 1  // VTAP_INBOUND_TABLE
	TableDHCP         uint8 = 5  // DHCP_TABLE
	TableGwEntry      uint8 = 31 // GW_ENTRY_TABLE (the SNAT seed: PRE_FLAT_TABLE)
	TableGwDrop       uint8 = 32 // GW_DROP_TABLE (the SNAT seed: FLAT_TABLE)
	TableARP          uint8 = 35 // ARP_TABLE
	TableACLEgress    uint8 = 40 // ACL_EGRESS_TABLE
	TableACLRecirc    uint8 = 43 // ACL_RECIRC_TABLE
	TableACLIngress   uint8 = 44 // ACL_INGRESS_TABLE
	TableACLConntrack uint8 = 45 // ACL_CT_TABLE
	TableForwarding   uint8 = 80 // FORWARDING_TABLE

	TableTunnelDefault uint8 = 0 // TUNNEL_DEFAULT_TABLE of br-tun
)

// Priorities of rules, by the names that ONOS gives them.
const (
	PriorityICMP               uint16 = 43000 // PRIORITY_ICMP_RULE
	PriorityDHCP               uint16 = 42000 // PRIORITY_DHCP_RULE
	PriorityLBShared           uint16 = 41501 // kvnet's own: row L-15 of docs/deviations.md
	PriorityLB                 uint16 = 41500 // PRIORITY_LB_RULE
	PriorityARPGateway         uint16 = 41000 // PRIORITY_ARP_GATEWAY_RULE
	PriorityInternalRouting    uint16 = 41000 // PRIORITY_INTERNAL_ROUTING_RULE
	PriorityInternalDrop       uint16 = 40900 // kvnet's own: row S-5 of docs/deviations.md
	PriorityFloatingUpstream   uint16 = 40800 // PRIORITY_FLOATING_IP_UPSTREAM_RULE
	PriorityFloatingDownstream uint16 = 40700 // PRIORITY_FLOATING_IP_DOWNSTREAM_RULE
	PriorityStatefulSNAT       uint16 = 40500 // PRIORITY_STATEFUL_SNAT_RULE
	PriorityLBLeave            uint16 = 40400 // kvnet's own: row L-22 of docs/deviations.md
	PriorityARPDefault         uint16 = 40000 // PRIORITY_ARP_DEFAULT_RULE
	PriorityLBTunnel           uint16 = 33000 // PRIORITY_LB_GATEWAY_TUN_BRIDGE_RULE
	PriorityForwarding         uint16 = 30000 // PRIORITY_FORWARDING_RULE
	PriorityLow                uint16 = 10000 // LOW
	PriorityDrop               uint16 = 0     // DROP
)

// Cookies and group ids of kvnet's own. The low 56 bits of a cookie are a hash of
// the rule as sent (southbound/reconcile).
const (
	CookieMark uint64 = 0x6b << 56
	CookieMask uint64 = 0xff << 56

	GroupIDMin uint32 = 0x6b000000
	GroupIDMax uint32 = 0x6bffffff
)

// Names of ports that the pipeline relies on.
const (
	PortIntToTun = "int-to-tun" // br-int of a gateway, towards br-tun
	PortTunToInt = "tun-to-int" // br-tun of a gateway, towards br-int
)
