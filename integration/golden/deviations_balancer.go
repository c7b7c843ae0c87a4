package golden

var balancerDeviations = []deviation{
	{
		Quirk: "L-5", Scenarios: `^(03|05|06)-`, From: 21, To: 33,
		Gone: `priority=33000,.*nw_dst=10\.10\.1\.11 `,
		Why:  "ONOS leaves the tunnel rule of a removed member",
	},
	{
		Quirk: "L-5", Scenarios: `^36-`, From: 20, To: 21,
		Gone: `priority=33000,`,
		Why:  "ONOS leaves the tunnel rule of a removed member",
	},
	{
		Quirk: "L-5", Scenarios: `^41-`, From: 21, To: 22,
		Gone: `priority=33000,.*nw_dst=10\.10\.2\.15 `,
		Why:  "ONOS leaves the tunnel rules in the network where the balancer was",
	},
	{
		Quirk: "L-5", Scenarios: `^64-`, From: 20, To: 23,
		Gone: `priority=33000,.*nw_dst=10\.10\.1\.12 `,
		Why:  "ONOS leaves the tunnel rule of a removed member",
	},
	{
		Quirk: "L-13", Scenarios: `^(01|02|03|05|06)-`, From: 31, To: 37,
		Gone: `10\.20\.0\.50\b`,
		Why:  "ONOS leaves the rules of a floating IP whose balancer is removed",
	},
	{
		Quirk: "L-14", Scenarios: `^58-`, From: 20, To: 22,
		Gone: `10\.20\.0\.50\b`,
		Why:  "ONOS leaves the rules of a floating IP that is deleted while bound",
	},
	{
		Quirk: "L-14", Scenarios: `^57-`, From: 21, To: 21,
		Come: `10\.20\.0\.50\b`, Like: 19, Of: "58-fip-removed-while-associated",
		Why: "ONOS has no rules for a floating IP that is created bound",
	},
	{
		Quirk: "L-18", Scenarios: `^(20|22)-`, From: 20, To: 20,
		Gone: `10\.20\.0\.50\b`,
		Why:  "ONOS leads packets to the members before it knows the peer's MAC, which the answers need",
	},
	{
		Quirk: "L-b", Scenarios: `^(20|22)-`, From: 22, To: 22,
		Edit: `(set_field:10\.20\.0\.50->ip_src,set_field:00:00:00:aa:bb:)cc`, With: "${1}cd",
		Why: "ONOS keeps the peer's first MAC in the rule of a floating IP",
	},
	{
		Quirk: "L-9", Scenarios: `^(31|35)-`, From: 18, To: 18,
		Gone: `group=G\(lb1\)`,
		Why:  "ONOS doesn't see that the port of a member comes",
	},
	{
		Quirk: "L-9", Scenarios: `^(31|35)-`, From: 18, To: 18,
		Come: `group=G\(lb1\)|priority=(41500|33000),.*10\.10\.1\.99 `, Like: 19,
		Why: "as above",
	},
	{
		Quirk: "L-9", Scenarios: `^(31|35)-`, From: 18, To: 18,
		Come: `priority=41500,.*nw_src=10\.10\.1\.99,`, Like: 19,
		Why: "as above",
	},
	{
		Quirk: "L-9", Scenarios: `^(31|35)-`, From: 20, To: 20,
		Edit: `set_field:02:00:00:00:01:01->eth_dst,set_field:10\.10\.1\.11->ip_dst,NORMAL \| `,
		Why:  "ONOS doesn't see that the port of a member goes",
	},
	{
		Quirk: "L-9", Scenarios: `^(31|35)-`, From: 20, To: 21,
		Gone: `priority=(41500|33000),dl_(src|dst)=02:00:00:00:01:01,`,
		Why:  "as above",
	},
	{
		Quirk: "L-9", Scenarios: `^62-`, From: 24, To: 25,
		Gone: `priority=33000,.*nw_dst=10\.10\.1\.12 `,
		Why:  "ONOS leaves the tunnel rule to a worker that is gone",
	},
	{
		Quirk: "L-3", Scenarios: `^39-`, From: 18, To: 19,
		Gone: `priority=41500 |priority=41500,dl_src=02:00:00:00:01:01,ip,`,
		Why:  "ONOS balances every packet for a protocol that it doesn't know",
	},
	{
		Quirk: "L-3", Scenarios: `^39-`, From: 20, To: 20,
		Gone: `tp_(src|dst)=0 `,
		Why:  "ONOS takes port 0",
	},
	{
		Quirk: "L-3", Scenarios: `^39-`, From: 22, To: 22,
		Come: `tp_(src|dst)=65535 `, Like: 21,
		Why: "ONOS takes port 70000 and then fails; kvnet refuses it and keeps the balancer",
	},
	{
		Quirk: "L-3", Scenarios: `^39-`, From: 24, To: 24,
		Gone: `group=`,
		Why:  "what ONOS can't remove because of port 70000",
	},
	{
		Quirk: "L-7", Scenarios: `^66-`, From: 17, To: 17,
		Come: `group=|priority=41500,`, Like: 18,
		Why: "ONOS deletes the group after it has found it there",
	},
	{
		Quirk: "L-16", Scenarios: `^28-`, From: 17, To: 19,
		Come: `group=|priority=(41500|40500),`, Like: 20,
		Why: "ONOS doesn't see that the router of a balancer comes (and Snat-P: S-11); kvnet's gateway stays when it isn't written (step 19)",
	},
	{
		Quirk: "L-16", Scenarios: `^59-`, From: 18, To: 19,
		Gone: `group=|priority=(41500|33000),`,
		Why:  "ONOS leaves the rules of a balancer whose router is deleted",
	},
	{
		Quirk: "L-16", Scenarios: `^44-`, From: 18, To: 18,
		Gone: `group=|priority=41500,`,
		Why:  "as above",
	},
	{
		Quirk: "L-16", Scenarios: `^45-`, From: 17, To: 17,
		Gone: `group=|priority=41500,`,
		Why:  "as above",
	},
	{
		Quirk: "L-16", Scenarios: `^57-`, From: 25, To: 25,
		Gone: `group=|priority=41500,`,
		Why:  "as above",
	},
	{
		Quirk: "N-1", Scenarios: `^55-`, From: 23, To: 23,
		Come: `nw_dst=10\.10\.1\.12 `, Like: 24,
		Why: "ONOS fails to elect a gateway",
	},
	{
		Quirk: "N-1", Scenarios: `^55-`, From: 25, To: 26,
		Gone: `nw_dst=10\.10\.1\.12 `,
		Why:  "as above: the rules of the port stay",
	},
	{
		Quirk: "S-9", Scenarios: `^(15|18|19)-`, From: 29, To: 29,
		Gone: `^of:00000000000000a2 table=31, priority=4`,
		Why:  "ONOS leaves the rules on a gateway that was cut off when the router left it",
	},
	{
		Quirk: "S-11", Scenarios: `^(56|62)-`, From: 21, To: 26,
		Over: `table=32, priority=40500,|table=0, priority=30000,.*dl_dst=02`,
		Why:  "ONOS installs the ports' rules of a new router only at its next update",
	},
	{
		Quirk: "S-13", Scenarios: `^45-`, From: 12, To: 16,
		Over: `priority=(40500|40900),|nw_dst=10\.20\.0\.50 `,
		Why:  "ONOS has no rules at all without the port to the outside; kvnet has those that don't name it",
	},
}
