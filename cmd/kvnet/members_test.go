package main

import (
	"strings"
	"testing"

	"kvnet/northbound/rest"
)

func TestADeadMemberHasNoFigures(t *testing.T) {
	term, lag, switches := uint32(3), int64(0), 2
	var out strings.Builder
	err := showMembers(&out, []rest.Member{
		{Name: "s1", Address: "192.0.2.1:7946", State: "alive", Leader: true, Voter: true, Term: &term, Lag: &lag, Switches: &switches, Version: "v1"},
		{Name: "s2", Address: "192.0.2.2:7946", State: "failed", Voter: true, Version: "v1"},
		{Name: "s3", Address: "192.0.2.3:7946", State: "failed"},
	})
	const want = `NAME  ADDRESS         STATE   ROLE     TERM  LAG  SWITCHES  VERSION
s1    192.0.2.1:7946  alive   leader   3     0    2         v1
s2    192.0.2.2:7946  failed  -        -     -    -         v1
s3    192.0.2.3:7946  failed  no vote  -     -    -         -
`
	if err != nil || out.String() != want {
		t.Errorf("%v\n%s", err, out.String())
	}
}
