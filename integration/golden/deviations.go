package golden

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"kvnet/integration/ovs"
	"kvnet/model"
)

// deviation is something that kvnet does otherwise than ONOS on purpose, in some
// steps of some scenarios. Each has a row in docs/deviations.md. One of Gone, Come,
// Edit and Over says what it is.
type deviation struct {
	Quirk     string // row of docs/deviations.md
	Scenarios string // regular expression for the folder's name
	From, To  int    // steps
	// Gone matches rules ("of:… table=…") that ONOS holds in these steps and
	// kvnet must not.
	Gone string
	// Come matches rules that ONOS holds in step Like (of scenario Of, if that
	// isn't empty) and kvnet already, still or only in these steps.
	Come string
	Like int
	Of   string
	// Edit is a regular expression for a part of what rules do, and what stands
	// there in kvnet's.
	Edit, With string
	// Over matches rules that are not compared: kvnet holds them in these steps,
	// and ONOS in no step that could be compared with.
	Over string
	Why  string
}

var deviations = slices.Concat(snatDeviations, balancerDeviations)

// refusals are steps that kvnet answers with another status than success, on
// purpose or as ONOS does.
var refusals = []struct {
	Scenarios string
	Step      int
	Status    int
	Why       string
}{
	{`^39-`, 20, 400, "L-3: port 0"},
	{`^39-`, 22, 400, "L-3: port 70000"},
	{`^49-`, 15, 400, "P4: a tunnel network without segmentId"},
	{`^43-`, 18, 409, "the balancer exists, also in ONOS"},
	{`^43-`, 19, 404, "there is no such balancer, also in ONOS"},
	{`^43-`, 20, 404, "as above"},
	{`^43-`, 22, 404, "as above"},
	{`^(15|18|19)-`, 37, 409, "a floating IP still refers to the router, also in ONOS"},
}

// refusal is the status with which a step is refused; 0 if it isn't.
func (s *Scenario) refusal(step int) int {
	for _, r := range refusals {
		if r.Step == step && regexp.MustCompile(r.Scenarios).MatchString(s.Folder) {
			return r.Status
		}
	}
	return 0
}

// uncomparedSteps are steps after which kvnet can't be expected to hold what ONOS
// held: kvnet elects a gateway by itself, or does not store what ONOS stores.
var uncomparedSteps = []struct {
	Scenarios string
	From, To  int
	Why       string
}{
	{`^(29|30)-`, 18, 18, "the router has no gateway in ONOS; kvnet elects the only one"},
	{`^39-`, 23, 23, "ONOS fails because of port 70000 that it has taken in step 22"},
	{`^62-`, 26, 27, "kvnet moves the router at once from a gateway that is deleted"},
	{`^49-`, 16, 20, "its network isn't stored (P4)"},
	{`^(15|18|19)-`, 21, 24, "the router has no gateway in ONOS; kvnet elects one of two"},
	{`^(15|18|19)-`, 27, 27, "kvnet moves the router at once from a gateway that is cut off"},
	{`^(15|18|19)-`, 31, 31, "ONOS takes the gateway away when it isn't written; kvnet's stays"},
	{`^(15|18|19)-`, 35, 35, "as above: its gateway isn't known"},
	{`^55-`, 21, 21, "as above: kvnet elects one of two"},
}

func (s *Scenario) uncompared(step int) bool {
	for _, u := range uncomparedSteps {
		if u.From <= step && step <= u.To && regexp.MustCompile(u.Scenarios).MatchString(s.Folder) {
			return true
		}
	}
	return false
}

// likeAnother are steps of scenarios whose router has no gateway in ONOS, where
// kvnet elects the only one. They are compared with steps of a scenario that has
// the same objects, and the gateway.
var likeAnother = []struct {
	Scenarios  string
	Step, Like int
	Of         string
}{
	{`^(29|30)-`, 15, 15, "40-lb-description"},
	{`^(29|30)-`, 16, 16, "40-lb-description"},
	{`^(29|30)-`, 17, 17, "40-lb-description"},
	{`^(29|30)-`, 19, 19, "40-lb-description"},
}

// recorded is what ONOS held after a step, or after that of another scenario that
// stands for it.
func (s *Scenario) recorded(step int) (State, error) {
	for _, l := range likeAnother {
		if l.Step == step && regexp.MustCompile(l.Scenarios).MatchString(s.Folder) {
			return stateOf(l.Of, l.Like)
		}
	}
	return s.Expected[step], nil
}

// stateOf is what ONOS held after a step of some scenario.
func stateOf(folder string, step int) (State, error) {
	s, err := Load(filepath.Join("testdata", "scenarios", folder))
	if err != nil {
		return nil, err
	}
	return s.Expected[step], nil
}

// apply changes what ONOS held after a step into what kvnet must hold. It fails
// for a deviation that finds nothing to change, because its row is wrong then.
func (s *Scenario) apply(step int) (State, error) {
	recorded, err := s.recorded(step)
	if err != nil {
		return nil, err
	}
	want := State{}
	for device, rules := range recorded {
		for _, r := range rules {
			if h := owner(r, s.addresses()); h == handlerBase || h == handlerSNAT || h == handlerBalancer {
				want[device] = append(want[device], r)
			}
		}
	}
	for _, d := range s.deviations(step) {
		changed, err := s.deviate(want, d)
		if err != nil {
			return nil, err
		}
		// A rule that is gone since From may be missing in ONOS in between.
		if changed == 0 && (step == d.From || step == d.To && d.Quirk != "S-7") {
			return nil, fmt.Errorf("deviation %s (%s) changes nothing in step %d", d.Quirk, d.Why, step)
		}
	}
	return want, nil
}

// deviations are the rows about a step.
func (s *Scenario) deviations(step int) (out []deviation) {
	for _, d := range deviations {
		if step >= d.From && step <= d.To && regexp.MustCompile(d.Scenarios).MatchString(s.Folder) {
			out = append(out, d)
		}
	}
	return out
}

// deviate changes want as a row says, and counts the rules that it has changed. A
// row that passes over rules of kvnet's counts as one.
func (s *Scenario) deviate(want State, d deviation) (changed int, err error) {
	switch {
	case d.Gone != "":
		return want.remove(regexp.MustCompile(d.Gone)), nil
	case d.Edit != "":
		return want.edit(regexp.MustCompile(d.Edit), d.With), nil
	case d.Over != "":
		return 1, nil
	}
	from := s.Expected[d.Like]
	if d.Of != "" {
		if from, err = stateOf(d.Of, d.Like); err != nil {
			return 0, err
		}
	}
	return want.add(from, regexp.MustCompile(d.Come)), nil
}

// over tells whether a rule is not compared in a step.
func (s *Scenario) over(step int, rule string) bool {
	return slices.ContainsFunc(s.deviations(step), func(d deviation) bool {
		return d.Over != "" && regexp.MustCompile(d.Over).MatchString(rule)
	})
}

func (s State) edit(match *regexp.Regexp, with string) (n int) {
	for _, rules := range s {
		for i, r := range rules {
			if actions := match.ReplaceAllString(r.Actions, with); actions != r.Actions {
				rules[i].Actions = actions
				n++
			}
		}
	}
	return n
}

func (s State) remove(match *regexp.Regexp) (n int) {
	for device, rules := range s {
		kept := slices.DeleteFunc(rules, func(r ovs.Flow) bool { return match.MatchString(withDevice(device, r)) })
		n += len(rules) - len(kept)
		s[device] = kept
	}
	return n
}

// add adds the rules of another state that match and aren't there yet.
func (s State) add(from State, match *regexp.Regexp) (n int) {
	for device, rules := range from {
		for _, r := range rules {
			there := slices.ContainsFunc(s[device], func(x ovs.Flow) bool { return x.String() == r.String() })
			if !there && match.MatchString(withDevice(device, r)) {
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
