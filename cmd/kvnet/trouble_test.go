package main

import (
	"errors"
	"testing"

	"kvnet/cluster/gossip"
	"kvnet/cluster/store"
)

func TestAMissingMajorityIsNamed(t *testing.T) {
	voters := []store.Member{{Name: "s4"}, {Name: "s3"}, {Name: "s2"}, {Name: "s1"}, {Name: "s5", Learner: true}}
	seen := func(s2, s3 gossip.State) []gossip.Member {
		return []gossip.Member{{Name: "s1"}, {Name: "s2", State: s2}, {Name: "s3", State: s3}}
	}
	for want, members := range map[string][]gossip.Member{
		"the majority of the cluster is missing: s2 (failed), s3 (left), s4 (not met)": seen(gossip.Failed, gossip.Left),
		"the majority of the cluster is missing: s4 (not met)":                         seen(gossip.Alive, gossip.Alive),
	} {
		if got := noMajority("s1", voters, members); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	want := "the majority of the cluster's stores is not in touch with this one"
	if got := noMajority("s1", voters[2:4], seen(gossip.Alive, gossip.Alive)); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestOnlyALeaderThatIsThereIsAsked(t *testing.T) {
	members := []gossip.Member{
		{Name: "s1", State: gossip.Alive, Meta: gossip.Meta{REST: "192.0.2.1:8181"}}, {Name: "s2", State: gossip.Failed}, {Name: "s3", State: gossip.Left},
	}
	for name, want := range map[string]string{
		"s1": `this server does not lead; ask "s1", its REST is at 192.0.2.1:8181`,
		"s2": `this server knows of no leader: the last one, "s2", has failed`,
		"s3": `this server knows of no leader: the last one, "s3", has left`,
		"s4": `this server knows of no leader: the last one, "s4", is not there`,
	} {
		if err := leaderAmong(name, members); err.Error() != want || !errors.Is(err, store.ErrNotLeader) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
