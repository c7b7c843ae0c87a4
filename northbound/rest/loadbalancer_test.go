package rest

import (
	"fmt"
	"strings"
	"testing"

	"kvnet/model"
)

func TestRulesWithoutEffectAreStoredWithAWarning(t *testing.T) {
	l := newLab(t)
	body := func(rules string) string {
		return fmt.Sprintf(`{"name":"web","vip":"10.0.0.9","networkId":"n","rules":[%s]}`, rules)
	}
	path := networkingPath + "/loadbalancer"
	r := l.must(201, "POST", path, body(`{"protocol":"tcp","portRangeMin":80,"portRangeMax":80},{"protocol":"SCTP"},{"protocol":"icmp"},{}`))
	got := r.header.Values("Warning")
	if len(got) != 2 || !strings.Contains(got[0], "rules[1]") || !strings.Contains(got[0], "SCTP") || !strings.Contains(got[1], "rules[3]") {
		t.Errorf("Warning %q", got)
	}
	if lb := l.db.Snapshot().LoadBalancer("web"); lb == nil || len(lb.Rules) != 4 {
		t.Errorf("stored %+v", lb)
	}
	var many []string
	for i := range 100 {
		many = append(many, fmt.Sprintf(`{"protocol":"p%d"}`, i))
	}
	r = l.must(200, "PUT", path+"/web", body(strings.Join(many, ",")))
	if got := r.header.Values("Warning"); len(got) != maxWarnings+1 {
		t.Errorf("%d warnings", len(got))
	}
	r = l.must(200, "PUT", path+"/web", body(`{"protocol":"UDP","portRangeMin":53,"portRangeMax":53}`))
	if got := r.header.Values("Warning"); got != nil {
		t.Errorf("Warning %q without reason", got)
	}
}

func TestMoreMembersThanAGroupHoldsAreRefused(t *testing.T) {
	l := newLab(t)
	body := func(n int) string {
		members := []string{`"10.0.0.1"`} // twice: it counts once
		for i := range n {
			members = append(members, fmt.Sprintf(`"10.0.%d.%d"`, i>>8, i&0xff))
		}
		return `{"name":"web","vip":"10.9.0.9","networkId":"n","members":[` + strings.Join(members, ",") + `]}`
	}
	path := networkingPath + "/loadbalancer"
	l.must(201, "POST", path, body(model.MaxMembers))
	r := l.must(400, "PUT", path+"/web", body(model.MaxMembers+1))
	if s := string(r.body); !strings.Contains(s, "members") || !strings.Contains(s, fmt.Sprint(model.MaxMembers)) {
		t.Errorf("%s", s)
	}
	if lb := l.db.Snapshot().LoadBalancer("web"); len(lb.Members) != model.MaxMembers {
		t.Errorf("%d members are stored", len(lb.Members))
	}
}
