package rest

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"kvnet/model"
)

// securityGroupJSON is ONOS's form of a security group.
type securityGroupJSON struct {
	ID          *string                 `json:"id" validate:"required,key" example:"sg-1" minLength:"1" maxLength:"4096"`
	Name        *string                 `json:"name" validate:"required" example:"web"`
	Description *string                 `json:"description,omitempty" example:"lets the web in"`
	Rules       []securityGroupRuleJSON `json:"rules,omitempty" validate:"dive"`
} // @name KubevirtSecurityGroup

type securityGroupRuleJSON struct {
	ID *string `json:"id" validate:"required" example:"rule-1"`
	// The id of the group that the rule belongs to.
	SecurityGroupID *string `json:"securityGroupId" validate:"required" example:"sg-1"`
	// ingress or egress.
	Direction *string `json:"direction" validate:"required" example:"ingress"`
	// IPv4 or IPv6.
	EtherType *string `json:"etherType,omitempty" example:"IPv4"`
	PortMax   *int32  `json:"portRangeMax,omitempty" example:"80" minimum:"0" maximum:"65535"`
	PortMin   *int32  `json:"portRangeMin,omitempty" example:"80" minimum:"0" maximum:"65535"`
	Protocol  *string `json:"protocol,omitempty" example:"TCP"`
	// The addresses of those at the other end.
	RemoteIPPrefix *string `json:"remoteIpPrefix,omitempty" validate:"omitempty,prefix" example:"198.51.100.0/24" format:"cidr"`
	// Or the security group that the ports at the other end have.
	RemoteGroupID *string `json:"remoteGroupId,omitempty" example:"sg-2"`
} // @name KubevirtSecurityGroupRule

func (*securityGroupJSON) entity() string { return "KubevirtSecurityGroup" }

func (g *securityGroupJSON) check(f *faults) {
	if *g.ID == "" {
		f.add("id is empty: Kubevirt security group ID cannot be null")
	}
	for i := range g.Rules {
		g.Rules[i].check(f, fmt.Sprintf("rules[%d]", i))
	}
}

func (r *securityGroupRuleJSON) check(f *faults, path string) {
	before := len(*f)
	for _, p := range []struct {
		name  string
		value *int32
	}{{"portRangeMin", r.PortMin}, {"portRangeMax", r.PortMax}} {
		if p.value != nil && (*p.value < 0 || *p.value > 65535) {
			name := joinPath(path, p.name)
			f.add("%s %d is no port from 0 to 65535", name, *p.value)
		}
	}
	proto := text(r.Protocol)
	hasPorts := strings.EqualFold(proto, "TCP") || strings.EqualFold(proto, "UDP")
	if len(*f) == before && hasPorts && r.PortMin != nil && r.PortMax != nil && *r.PortMin > *r.PortMax {
		f.add("%s: portRangeMin %d is greater than portRangeMax %d", path, *r.PortMin, *r.PortMax)
	}
}

func (g *securityGroupJSON) key() string { return *g.ID }

func (g *securityGroupJSON) apply(model.Object) model.Object {
	out := &model.SecurityGroup{ID: *g.ID, Name: *g.Name, Description: g.Description}
	for _, r := range g.Rules {
		rule := model.SecurityGroupRule{
			ID:              *r.ID,
			SecurityGroupID: *r.SecurityGroupID,
			Direction:       *r.Direction,
			EtherType:       r.EtherType,
			PortRangeMax:    r.PortMax,
			PortRangeMin:    r.PortMin,
			Protocol:        r.Protocol,
			RemoteIPPrefix:  prefix(r.RemoteIPPrefix),
			RemoteGroupID:   r.RemoteGroupID,
		}
		if !slices.ContainsFunc(out.Rules, func(x model.SecurityGroupRule) bool {
			return x.ID == rule.ID && reflect.DeepEqual(x, rule)
		}) {
			out.Rules = append(out.Rules, rule)
		}
	}
	return out
}

func encodeSecurityGroup(g *model.SecurityGroup) *securityGroupJSON {
	out := &securityGroupJSON{ID: &g.ID, Name: &g.Name, Description: g.Description}
	for _, r := range g.Rules {
		x := securityGroupRuleJSON{
			ID:              &r.ID,
			SecurityGroupID: &r.SecurityGroupID,
			Direction:       &r.Direction,
			EtherType:       r.EtherType,
			PortMax:         r.PortRangeMax,
			PortMin:         r.PortRangeMin,
			Protocol:        r.Protocol,
			RemoteGroupID:   r.RemoteGroupID,
		}
		if r.RemoteIPPrefix.IsValid() {
			x.RemoteIPPrefix = ptr(r.RemoteIPPrefix.String())
		}
		out.Rules = append(out.Rules, x)
	}
	return out
}
