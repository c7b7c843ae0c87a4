package golden

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"kvnet/integration/ovs"
	"kvnet/model"
)

// deviation is something that kvnet does otherwise than ONOS on purpose, in some
// steps of some scenarios. Each has a row in docs/deviations.md.
type deviation struct {
	Quirk     string // row of docs/deviations.md
	Scenarios string // regular expression for the folder's name
	From, To  int    // steps
	// Gone matches rules ("of:… table=…") that ONOS holds in these steps and
	// kvnet must not.
	Gone string
	// Come matches rules that ONOS holds in step Like and kvnet already (or
	// still) in these steps.
	Come string
	Like int
	Why  string
}

const (
	snatLives = `^(07|08|09|10|11|12|14)-`
	anySNAT   = `priority=(41000|40500|30000),`
)

var deviations = []deviation{
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

// apply changes what ONOS held after a step into what kvnet must hold. It fails
// for a deviation that finds nothing to change, because its row is wrong then.
func (s *Scenario) apply(step int) (State, error) {
	want := State{}
	for device, rules := range s.Expected[step] {
		for _, r := range rules {
			if h := owner(r, s.snatAddresses()); h == handlerBase || h == handlerSNAT {
				want[device] = append(want[device], r)
			}
		}
	}
	for _, d := range deviations {
		if step < d.From || step > d.To || !regexp.MustCompile(d.Scenarios).MatchString(s.Folder) {
			continue
		}
		changed := 0
		if d.Gone != "" {
			changed += want.remove(regexp.MustCompile(d.Gone))
		}
		if d.Come != "" {
			changed += want.add(s.Expected[d.Like], regexp.MustCompile(d.Come))
		}
		// A rule that is gone since From may be missing in ONOS in between.
		if changed == 0 && (step == d.From || step == d.To && d.Quirk != "S-7") {
			return nil, fmt.Errorf("deviation %s (%s) changes nothing in step %d", d.Quirk, d.Why, step)
		}
	}
	return want, nil
}

func (s State) remove(match *regexp.Regexp) (n int) {
	for device, rules := range s {
		kept := slices.DeleteFunc(rules, func(r ovs.Flow) bool { return match.MatchString(withDevice(device, r)) })
		n += len(rules) - len(kept)
		s[device] = kept
	}
	return n
}

func (s State) add(from State, match *regexp.Regexp) (n int) {
	for device, rules := range from {
		for _, r := range rules {
			if match.MatchString(withDevice(device, r)) {
				s[device] = append(s[device], r)
				n++
			}
		}
	}
	return n
}

func withDevice(device model.DPID, r ovs.Flow) string { return device.String() + " " + r.String() }

// zoneOf matches the zone of a ct action.
var zoneOf = regexp.MustCompile(`zone=(\d+),?`)

// withoutZone is the declared rewrite of row S-12: a conntrack zone for each
// router, where ONOS has zone 0 everywhere. It returns the zone that was there.
func withoutZone(r ovs.Flow) (ovs.Flow, string) {
	if !strings.Contains(r.Actions, "ct(") {
		return r, ""
	}
	zone := ""
	if m := zoneOf.FindStringSubmatch(r.Actions); m != nil {
		zone = m[1]
	}
	r.Actions = zoneOf.ReplaceAllString(r.Actions, "")
	return r, zone
}
