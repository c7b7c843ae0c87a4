package rest

import (
	"net/http"
	"testing"
)

type fixedMembers []Member

func (m fixedMembers) Members() []Member { return m }

func TestMembersAreListedWithAllFields(t *testing.T) {
	term, lag, switches := uint32(3), int64(2), 0
	l := newLab(t, func(c *Config) {
		c.Members = fixedMembers{
			{Name: "a", Address: "192.0.2.1:7946", State: "alive", Leader: true, Voter: true, Term: &term, Version: "v1", Lag: &lag, Switches: &switches},
			{Name: "b", Address: "192.0.2.2:7946", State: "failed", Voter: true, Version: "v1"},
		}
	})
	viewer := map[string]string{"Authorization": viewerAuth}
	const want = `{"members":[{"name":"a","address":"192.0.2.1:7946","state":"alive","leader":true,"voter":true,"term":3,"version":"v1","lag":2,"switches":0},{"name":"b","address":"192.0.2.2:7946","state":"failed","leader":false,"voter":true,"version":"v1"}]}`
	if r := l.send(http.MethodGet, "/kvnet/v1/members", viewer, nil); r.status != http.StatusOK || string(r.body) != want {
		t.Errorf("%d %s, want %s", r.status, r.body, want)
	}
	empty := newLab(t, func(c *Config) { c.Members = fixedMembers(nil) })
	if r := empty.must(http.StatusOK, http.MethodGet, "/kvnet/v1/members", ""); string(r.body) != `{"members":[]}` {
		t.Errorf("nobody: %s", r.body)
	}
}
