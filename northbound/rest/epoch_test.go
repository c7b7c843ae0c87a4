package rest

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	"kvnet/cluster/store"
)

type epochs struct{ n uint32 }

func (e *epochs) RaiseEpoch(context.Context) (uint32, error) { e.n++; return e.n, nil }

func TestOnlyAnAdminRaisesTheEpoch(t *testing.T) {
	e := &epochs{}
	l := newLab(t, func(c *Config) { c.Epochs = e })
	const path = "/kvnet/v1/cluster/raise-epoch"
	viewer := map[string]string{"Authorization": viewerAuth}
	if r := l.send(http.MethodPost, path, viewer, nil); r.status != http.StatusForbidden || e.n != 0 {
		t.Errorf("a viewer got %d, the epoch is %d", r.status, e.n)
	}
	if r := l.must(http.StatusOK, http.MethodPost, path, ""); string(r.body) != `{"epoch":1}` {
		t.Errorf("answer %s", r.body)
	}
}

type noLeader struct{}

func (noLeader) RaiseEpoch(context.Context) (uint32, error) {
	return 0, fmt.Errorf("raise the epoch: %w", store.ErrNotLeader)
}

// Right after a raise the leader takes its new term: a second one has to wait.
func TestWithoutLeadingTheEpochIsRaisedLater(t *testing.T) {
	l := newLab(t, func(c *Config) { c.Epochs = noLeader{} })
	r := l.must(http.StatusServiceUnavailable, http.MethodPost, "/kvnet/v1/cluster/raise-epoch", "")
	if r.header.Get("Retry-After") == "" {
		t.Error("the answer does not say when to try again")
	}
}
