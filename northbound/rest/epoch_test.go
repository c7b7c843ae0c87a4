package rest

import (
	"context"
	"net/http"
	"testing"
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
