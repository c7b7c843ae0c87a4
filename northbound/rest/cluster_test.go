package rest

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"kvnet/cluster/store"
)

// keeper removes members and writes backups as a test wants it.
type keeper struct {
	removed string
	err     error
	backup  string
}

func (k *keeper) RemoveMember(_ context.Context, name string) error {
	k.removed = name
	return k.err
}

func (k *keeper) Backup(_ context.Context, w io.Writer) error {
	if k.backup == "" {
		return k.err
	}
	_, err := io.WriteString(w, k.backup)
	return errors.Join(err, k.err)
}

func TestAMemberIsRemovedByAnAdmin(t *testing.T) {
	k := &keeper{}
	l := newLab(t, func(c *Config) { c.Cluster = k })
	const path = "/kvnet/v1/cluster/members/b%2F1"
	viewer := map[string]string{"Authorization": viewerAuth}
	if r := l.send(http.MethodDelete, path, viewer, nil); r.status != http.StatusForbidden || k.removed != "" {
		t.Errorf("a viewer got %d, %q is removed", r.status, k.removed)
	}
	l.must(http.StatusNoContent, http.MethodDelete, path, "")
	if k.removed != "b/1" {
		t.Errorf("%q is removed", k.removed)
	}
	for status, err := range map[int]error{
		http.StatusNotFound: store.ErrNotFound, http.StatusConflict: ClusterRefusal("it is the only member"),
		http.StatusServiceUnavailable: store.ErrUnavailable, http.StatusInternalServerError: errors.New("something else"),
	} {
		k.err = err
		l.must(status, http.MethodDelete, path, "")
	}
}

func TestABackupIsForAdminsAndWholeOrBroken(t *testing.T) {
	k := &keeper{backup: strings.Repeat("x", 1<<20)}
	l := newLab(t, func(c *Config) { c.Cluster = k })
	const path = "/kvnet/v1/cluster/backup"
	if r := l.send(http.MethodPost, path, map[string]string{"Authorization": viewerAuth}, nil); r.status != http.StatusForbidden {
		t.Errorf("a viewer got %d", r.status)
	}
	if r := l.must(http.StatusOK, http.MethodPost, path, ""); string(r.body) != k.backup {
		t.Errorf("%d bytes", len(r.body))
	}
	k.err = store.ErrUnavailable
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+l.server.Addr().String()+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", adminAuth)
	resp, err := l.client.Do(req)
	if err == nil {
		_, err = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
	}
	if err == nil {
		t.Error("a broken backup looks whole")
	}
	k.backup = ""
	l.must(http.StatusServiceUnavailable, http.MethodPost, path, "")
}
