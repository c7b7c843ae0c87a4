package rest

import (
	"strings"
	"time"

	"kvnet/model"
)

// Inspector tells what kvnet is doing. It must not block.
type Inspector interface {
	// Flows lists rules by owner. Empty arguments mean all; owner is meant as
	// in OwnerMatches.
	Flows(switchID, owner string) FlowsReport
	// Switches lists the switches that have been connected.
	Switches() []SwitchView
	// Cluster lists the members of the cluster.
	Cluster() []MemberView
}

// FlowsReport is the answer of GET /kvnet/v1/flows.
type FlowsReport struct {
	Flows   []FlowView    `json:"flows"`
	Waiting []WaitingView `json:"waiting"`
}

// FlowView is a rule that an owner wants on a switch.
type FlowView struct {
	Switch string `json:"switch"`
	Owner  string `json:"owner"`
	// Rule is the rule as ovs-ofctl writes it.
	Rule string `json:"rule"`
	// State is installed, pending, refused or conflict; Reason says more.
	State  string `json:"state"`
	Reason string `json:"reason"`
}

// WaitingView says what an owner waits for.
type WaitingView struct {
	Owner string `json:"owner"`
	For   string `json:"for"`
}

// SwitchView is a switch in the answer of GET /kvnet/v1/switches.
type SwitchView struct {
	ID         string     `json:"id"`
	Address    string     `json:"address"`
	Node       string     `json:"node"`
	Role       model.Role `json:"role"`
	Generation uint64     `json:"generation"`
	Flows      int        `json:"flows"`
	Groups     int        `json:"groups"`
	LastError  string     `json:"lastError"`
	Connected  bool       `json:"connected"`
}

// MemberView is a member of the cluster in the answer of GET /onos/v1/cluster.
type MemberView struct {
	ID      string
	IP      string
	TCPPort int
	// Status is READY, ACTIVE or INACTIVE, as in ONOS.
	Status     string
	LastUpdate time.Time
}

// OwnerMatches tells whether the filter picks the owner: it is the owner's name,
// or a part of it up to a slash ("snat" and "snat/r1" pick "snat/r1/port/1").
func OwnerMatches(filter, owner string) bool {
	if filter == "" || filter == owner {
		return true
	}
	rest, ok := strings.CutPrefix(owner, strings.TrimSuffix(filter, "/"))
	return ok && strings.HasPrefix(rest, "/")
}
