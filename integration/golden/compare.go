package golden

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"kvnet/model"
)

// compare returns an error that shows how got differs from want, in ovs-ofctl's
// words. got is all that the switches hold: rules of handlers that were not
// recorded are passed over, rules of nobody are not.
func (s *Scenario) compare(want, got State) error {
	var differences []string
	zones := map[string]bool{}
	held := map[string]int{}
	for device, rules := range got {
		for _, r := range rules {
			switch owner(r, s.snatAddresses()) {
			case handlerBase, handlerSNAT, handlerInternalDrop:
				r, zone := withoutZone(r)
				if strings.Contains(r.Actions, "ct(") {
					zones[zone] = true
				}
				held[withDevice(device, r)]++
			case handlerUnknown:
				differences = append(differences, "nobody's:   "+withDevice(device, r))
			}
		}
	}
	for device, rules := range want {
		for _, r := range rules {
			held[withDevice(device, r)]--
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
	if zones[""] || zones["0"] || len(zones) > 1 {
		differences = append(differences, fmt.Sprintf("the router's ct actions are in zones %v, want one that is not 0 (S-12)", zones))
	}
	if len(differences) == 0 {
		return nil
	}
	slices.Sort(differences)
	return errors.New("\n  " + strings.Join(differences, "\n  "))
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
