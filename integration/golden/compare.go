package golden

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"kvnet/integration/ovs"
	"kvnet/model"
)

// compare returns an error that shows how got differs from want, in ovs-ofctl's
// words. got is all that the switches hold: rules of handlers that were not
// recorded are passed over, rules of nobody are not.
func (s *Scenario) compare(step int, want, got State) error {
	var differences []string
	zones := map[string]bool{}
	held := map[string]int{}
	for device, rules := range got {
		for _, r := range resolveGroups(rules) {
			switch owner(r, s.addresses()) {
			case handlerBase, handlerSNAT, handlerInternalDrop, handlerBalancer:
				r, zone := withoutZone(r)
				if strings.Contains(r.Actions, "ct(") {
					zones[zone] = true
				}
				if line := withDevice(device, r); !s.over(step, line) {
					held[line]++
				}
			case handlerUnknown:
				differences = append(differences, "nobody's:   "+withDevice(device, r))
			}
		}
	}
	for device, rules := range want {
		if _, compared := got[device]; !compared {
			continue
		}
		for _, r := range resolveGroups(rules) {
			if line := withDevice(device, r); !s.over(step, line) {
				held[line]--
			}
		}
	}
	for rule, n := range held {
		switch {
		case n > 0:
			differences = append(differences, "too much:   "+rule)
		case n < 0:
			differences = append(differences, "missing:    "+rule)
		}
	}
	if zones[""] || zones["0"] || len(zones) > len(s.routers()) {
		differences = append(differences, fmt.Sprintf("the routers' ct actions are in zones %v, want one for each that is not 0 (S-12)", zones))
	}
	if len(differences) == 0 {
		return nil
	}
	slices.Sort(differences)
	return errors.New("\n  " + strings.Join(differences, "\n  "))
}

// resolveGroups puts what a group does in the place of its name, in the rules that
// use it and in its own, so that names don't count.
func resolveGroups(rules []ovs.Flow) []ovs.Flow {
	does := map[string]string{}
	for _, r := range rules {
		if name, ok := r.Field("group"); ok && r.Table == groupTable {
			does[name] = r.Actions
		}
	}
	out := slices.Clone(rules)
	for i, r := range out {
		if r.Table == groupTable {
			out[i].Match = nil
			continue
		}
		before, name, ok := strings.Cut(r.Actions, "group:")
		if !ok {
			continue
		}
		name, after, _ := strings.Cut(name, ",")
		content, ok := does[name]
		if !ok {
			content = "nothing"
		}
		out[i].Actions = before + "group{" + content + "}" + after
	}
	return out
}

// routers are the names of all routers of the scenario.
func (s *Scenario) routers() map[string]bool {
	out := map[string]bool{}
	for _, step := range s.Steps {
		if step.Router != nil {
			out[text(step.Router, "name")] = true
		}
	}
	return out
}

// deviceIDs are the devices of the scenario.
func (s *Scenario) deviceIDs() ([]model.DPID, error) {
	var ids []model.DPID
	for _, step := range s.Steps {
		if step.Op != "addDevice" {
			continue
		}
		id, err := model.ParseDPID(step.ID)
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, nil
}
