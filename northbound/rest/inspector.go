package rest

import (
	"strings"
	"time"

	"kvnet/model"
)

// Inspector tells what kvnet is doing. It must not block.
type Inspector interface {
	// Flows lists rules by owner. Empty arguments mean all; owner is meant as
	// in OwnerMatches. The error says who leads instead of this server, which
	// therefore doesn't know.
	Flows(switchID, owner string) (FlowsReport, error)
	// Switches lists the switches that have been connected.
	Switches() []SwitchView
	// Cluster lists the members of the cluster.
	Cluster() []MemberView
}

// FlowsReport is the answer of GET /kvnet/v1/flows.
type FlowsReport struct {
	Flows   []FlowView    `json:"flows" validate:"required"`
	Waiting []WaitingView `json:"waiting" validate:"required"`
} // @name Flows

// FlowView is a rule that an owner wants on a switch.
type FlowView struct {
	Switch string `json:"switch" validate:"required"`
	Owner  string `json:"owner" validate:"required"`
	// Rule is the rule as ovs-ofctl writes it.
	Rule string `json:"rule" validate:"required"`
	// State is installed, pending, refused or conflict; Reason says more.
	State  string `json:"state" validate:"required" enums:"installed,pending,refused,conflict"`
	Reason string `json:"reason" validate:"required"`
} // @name Flow

// WaitingView says what an owner waits for.
type WaitingView struct {
	Owner string `json:"owner" validate:"required"`
	For   string `json:"for" validate:"required"`
} // @name Waiting

// SwitchView is a switch in the answer of GET /kvnet/v1/switches.
type SwitchView struct {
	ID         string     `json:"id" validate:"required"`
	Address    string     `json:"address" validate:"required"`
	Node       string     `json:"node" validate:"required"`
	Role       model.Role `json:"role" validate:"required" swaggertype:"string" enums:"EQUAL,MASTER,SLAVE"`
	Generation uint64     `json:"generation" validate:"required"`
	Flows      int        `json:"flows" validate:"required"`
	Groups     int        `json:"groups" validate:"required"`
	LastError  string     `json:"lastError" validate:"required"`
	Connected  bool       `json:"connected" validate:"required"`
	// TLS says whether the switch is connected over TLS.
	TLS bool `json:"tls" validate:"required"`
} // @name Switch

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
