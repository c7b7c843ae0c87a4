package model

import "net/netip"

// SecurityGroup is a named set of rules that ports refer to.
type SecurityGroup struct {
	Meta
	ID          string              `json:"id"`
	Name        string              `json:"name"`
	Description *string             `json:"description,omitempty"`
	Rules       []SecurityGroupRule `json:"rules,omitempty"`
}

// SecurityGroupRule allows traffic of one direction.
type SecurityGroupRule struct {
	ID              string       `json:"id"`
	SecurityGroupID string       `json:"securityGroupId"`
	Direction       string       `json:"direction"`
	EtherType       *string      `json:"etherType,omitempty"`
	PortRangeMax    *int32       `json:"portRangeMax,omitempty"`
	PortRangeMin    *int32       `json:"portRangeMin,omitempty"`
	Protocol        *string      `json:"protocol,omitempty"`
	RemoteIPPrefix  netip.Prefix `json:"remoteIpPrefix"` // invalid: none
	RemoteGroupID   *string      `json:"remoteGroupId,omitempty"`
}

// Kind implements Object.
func (*SecurityGroup) Kind() Kind { return KindSecurityGroup }

// Key implements Object.
func (g *SecurityGroup) Key() string { return g.ID }
