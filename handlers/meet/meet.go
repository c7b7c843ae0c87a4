package meet

import (
	"fmt"

	"kvnet/handlers"
	"kvnet/model/state"
	"kvnet/southbound/flow"
)

// Pair are two rules of one table and priority that may match the same packet and do
// different things with it. A kind is the name that docs/pipeline.md has for a rule.
type Pair struct {
	Kinds [2]string
	Rules [2]flow.Rule
}

// String shows the pair.
func (p Pair) String() string {
	return fmt.Sprintf("which one counts on %s?\n  %s %s\n  %s %s",
		p.Rules[0].Switch, p.Kinds[0], p.Rules[0], p.Kinds[1], p.Rules[1])
}

func (p Pair) turned() Pair {
	return Pair{[2]string{p.Kinds[1], p.Kinds[0]}, [2]flow.Rule{p.Rules[1], p.Rules[0]}}
}

// asInTheOriginal are the kinds that may meet, because they do in the original and its
// priorities are kept (row L-22 of docs/deviations.md), and what happens then.
var asInTheOriginal = map[[2]string]string{
	{"Lb-U", "Lb-FD"}:    "a member sends from a served port to a floating IP",
	{"Lb-U", "L-1"}:      "a member sends from a served port to a VIP, through the router",
	{"Lb-D", "Lb-FU"}:    "a VIP with a floating IP answers another VIP; only routers with one network have Lb-FU there",
	{"L-2", "L-2"}:       "the answer for a VIP at a port and the one for an equal VIP everywhere",
	{"Snat-U", "Snat-D"}: "a VM sends to a SNAT address of its gateway, where nothing answers either way",
}

// Find are the pairs among the rules of all owners, in a snapshot. Of claims of one
// place only that of the first owner counts, as on the switch. accepted are pairs that
// meet in the original too, with their kinds in the order of the list, unknown all
// others.
func Find(db state.Snapshot, hs ...handlers.Handler) (unknown, accepted []Pair) {
	claims := map[place]claim{}
	for _, h := range hs {
		for _, o := range h.Owners(db) {
			set, _ := h.Rules(db, o)
			for _, r := range set.Rules {
				at := placeOf(r)
				if c, ok := claims[at]; !ok || o < c.owner {
					claims[at] = claim{o, r}
				}
			}
		}
	}
	rules := make([]flow.Rule, 0, len(claims))
	for _, c := range claims {
		rules = append(rules, c.rule)
	}
	for _, p := range flow.Ambiguous(rules) {
		pair := Pair{Rules: p}
		for i, r := range p {
			pair.Kinds[i] = kindOf(claims[placeOf(r)].owner, r)
		}
		if turned := pair.turned(); asInTheOriginal[turned.Kinds] != "" {
			pair = turned
		}
		if asInTheOriginal[pair.Kinds] != "" {
			accepted = append(accepted, pair)
		} else {
			unknown = append(unknown, pair)
		}
	}
	return unknown, accepted
}

// claim is what an owner wants at a place, where a switch holds one rule.
type (
	claim struct {
		owner flow.Owner
		rule  flow.Rule
	}
	place struct {
		sw  uint64
		key flow.Key
	}
)

func placeOf(r flow.Rule) place { return place{uint64(r.Switch), r.Key()} }

// kindOf names the rules that may meet others; "" are those that must not.
func kindOf(o flow.Owner, r flow.Rule) string {
	if parts, ok := handlers.OwnerParts("lb", o); ok {
		return kindOfBalancer(parts, r)
	}
	if _, ok := handlers.OwnerParts("snat", o); ok && r.Table == flow.TableGwEntry && r.Priority == flow.PriorityStatefulSNAT {
		if r.Match.EthDst.IsZero() {
			return "Snat-D"
		}
		return "Snat-U"
	}
	return ""
}

func kindOfBalancer(owner []string, r flow.Rule) string {
	of := ""
	if len(owner) > 1 {
		of = owner[1]
	}
	isARP := r.Match.EthType == flow.EthTypeARP
	switch {
	case of == "member" && r.Table == flow.TableGwEntry:
		return "Lb-U"
	case of == "fip" && r.Table == flow.TableGwEntry && !isARP:
		return "Lb-FD"
	case of == "fip" && r.Table == flow.TableGwDrop:
		return "Lb-FU"
	case of == "" && r.Table == flow.TableGwDrop:
		return "Lb-D"
	case of == "" && r.Table == flow.TableGwEntry && isARP:
		return "L-2"
	case of == "" && r.Table == flow.TableGwEntry:
		return "L-1"
	}
	return ""
}
