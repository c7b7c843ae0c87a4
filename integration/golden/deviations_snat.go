package golden

const (
	snatLives = `^(07|08|09|10|11|12|14)-`
	anySNAT   = `priority=(41000|40500|30000),`
)

var snatDeviations = []deviation{
	{
		Quirk: "S-7", Scenarios: snatLives, From: 24, To: 38,
		Gone: `nw_dst=10\.10\.1\.13 `,
		Why:  "ONOS leaves the rules of a port's old address; kvnet's go with it",
	},
	{
		Quirk: "S-6", Scenarios: snatLives, From: 28, To: 28,
		Gone: `nw_dst=10\.10\.1\.14 `,
		Why:  "ONOS installs the rules of a port though SNAT is off",
	},
	{
		Quirk: "S-2", Scenarios: snatLives, From: 31, To: 32,
		Gone: `(arp_tpa|nw_dst)=10\.20\.0\.5[ ,]`,
		Why:  "ONOS leaves the ARP responder and the return rule of a replaced external address",
	},
	{
		Quirk: "S-11", Scenarios: snatLives, From: 35, To: 35,
		Come: `nw_dst=10\.10\.1\.(11|12|14) `, Like: 36,
		Why: "ONOS installs the ports' rules of a new router only at its next update; kvnet does not tell the two apart",
	},
	{
		Quirk: "S-16", Scenarios: snatLives, From: 37, To: 38,
		Gone: anySNAT,
		Why:  "ONOS forgets the rules of a router whose external network and SNAT go in one update; kvnet has no rule without a reason",
	},
	{
		Quirk: "S-11", Scenarios: `^51-`, From: 11, To: 11,
		Come: `nw_dst=10\.10\.1\.11 `, Like: 12,
		Why: "as above: ONOS installs the ports' rules of a new router only at its next update",
	},
	{
		Quirk: "S-11", Scenarios: `^61-`, From: 16, To: 16,
		Come: `nw_dst=10\.10\.1\.11 `, Like: 18,
		Why: "as above: ONOS installs the ports' rules of a new router only at its next update",
	},
	{
		Quirk: "S-9", Scenarios: `^61-`, From: 17, To: 17,
		Gone: anySNAT,
		Why:  "ONOS leaves the rules on the old gateway when SNAT goes off in the same update",
	},
	{
		Quirk: "S-9", Scenarios: `^61-`, From: 19, To: 19,
		Gone: anySNAT,
		Why:  "ONOS leaves the rules of a router that loses gateway and external network in one update",
	},
}
