package store

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"kvnet/model/state"
)

// backedUp is a store with 20 networks and a term, and a backup of it.
func backedUp(t *testing.T) (f *fixture, b []byte, info BackupInfo, term Term) {
	t.Helper()
	f = open(t, config(t))
	term = takeTerm(f, "a", "1")
	for i := range 20 {
		f.at(f.Create(ctx(t), network(fmt.Sprint(i))))
	}
	var buf bytes.Buffer
	info, err := f.Backup(ctx(t), &buf)
	if err != nil {
		t.Fatal(err)
	}
	return f, buf.Bytes(), info, term
}

// wantRestored checks that a store has what backedUp has stored, under another
// id and a later epoch.
func wantRestored(t *testing.T, g *fixture, old string, term Term, now Restored) {
	t.Helper()
	for i := range 20 {
		if g.db.Snapshot().Network(fmt.Sprint(i)) == nil {
			t.Errorf("network %d is lost", i)
		}
	}
	if id, err := g.ClusterID(ctx(t)); err != nil || id == old || id != now.ClusterID {
		t.Errorf("cluster id %s, %v; the old one was %s, promised was %s", id, err, old, now.ClusterID)
	}
	next := takeTerm(g, "b", "1")
	if next.Epoch <= term.Epoch || next.Generation() <= term.Generation() || next.Epoch < now.Epoch {
		t.Errorf("term %+v after %+v; promised was epoch %d", next, term, now.Epoch)
	}
}

func TestARestoredBackupIsAnotherClusterWithTheSameObjects(t *testing.T) {
	f, b, info, term := backedUp(t)
	old, err := f.ClusterID(ctx(t))
	if err != nil || info.ClusterID != old || info.Revision < f.db.Snapshot().Revision() {
		t.Fatalf("%+v, %v", info, err)
	}
	c := config(t)
	now, err := Restore(ctx(t), bytes.NewReader(b), RestoreConfig{Dir: c.Dir, Logger: testLog(t)})
	if err != nil || now.Backup != info {
		t.Fatalf("%+v, %v", now, err)
	}
	_, err = Restore(ctx(t), bytes.NewReader(b), RestoreConfig{Dir: c.Dir, Logger: testLog(t)})
	wantErr(t, err, ErrNotEmpty)
	for range 2 {
		g := open(t, c)
		wantRestored(t, g, old, term, now)
		if id, err := ReadIdentity(c.Dir); err != nil || id.Previous != "" || !id.Started {
			t.Errorf("identity %+v, %v", id, err)
		}
		g.close()
	}
	// The first one is not disturbed, and the two never talk to each other.
	f.at(f.Create(ctx(t), network("after")))
}

func TestABackupIsRestoredAsThree(t *testing.T) {
	f, b, _, term := backedUp(t)
	old, err := f.ClusterID(ctx(t))
	if err != nil {
		t.Fatal(err)
	}
	cs := planned(t, "a", "b", "c")
	var now Restored
	for n, c := range cs {
		r := RestoreConfig{Dir: c.Dir, Name: n, Members: c.Cluster.Members, ClusterID: c.Cluster.ID, Logger: testLog(t)}
		if now, err = Restore(ctx(t), bytes.NewReader(b), r); err != nil {
			t.Fatal(err)
		}
		c.Cluster = Cluster{}
		cs[n] = c
	}
	fs := openAll(t, cs)
	rev, err := fs["a"].Create(ctx(t), network("new"))
	for _, g := range fs {
		g.at(rev, err)
		wantRestored(t, g, old, term, now)
		term.Epoch--
	}
}

func TestABackupOfAFollowerHasEveryAcknowledgedWrite(t *testing.T) {
	fs := openAll(t, planned(t, "a", "b", "c"))
	follower := "b"
	if leader(t, fs) == follower {
		follower = "c"
	}
	a, b := fs["a"], fs[follower]
	server := b.engine.etcd.Server
	for _, m := range server.Cluster().Members() {
		if m.ID != server.MemberID() {
			server.CutPeer(m.ID)
		}
	}
	if _, err := a.Create(ctx(t), network("n")); err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(ctx(t), time.Second)
	defer cancel()
	var buf bytes.Buffer
	if _, err := b.Backup(short, &buf); !errors.Is(err, ErrUnavailable) || buf.Len() > 0 {
		t.Fatalf("a backup without what was acknowledged: %d bytes, %v", buf.Len(), err)
	}
	for _, m := range server.Cluster().Members() {
		if m.ID != server.MemberID() {
			server.MendPeer(m.ID)
		}
	}
	until(t, "it is in touch again", func() bool { h, _ := b.Health(); return h.Quorum })
	if _, err := b.Backup(ctx(t), &buf); err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(buf.Bytes(), []byte(prefix+"network/n")) {
		t.Error("what was written meanwhile is not in it")
	}
}

func TestABackupThatIsNotWholeIsRefused(t *testing.T) {
	_, b, _, _ := backedUp(t)
	header := bytes.IndexByte(b[len(backupMagic):], '\n') + len(backupMagic)
	newer := slices.Clone(b)
	copy(newer, bytes.Replace(b, []byte(`"schema":1`), []byte(`"schema":9`), 1))
	flip := func(i int) []byte {
		c := slices.Clone(b)
		c[i] ^= 1
		return c
	}
	for name, bad := range map[string][]byte{
		"empty": nil, "another file": []byte(strings.Repeat("x", 1000)), "magic only": []byte(backupMagic),
		"no body": b[:header+1], "half a header": b[:header-5],
		"cut": b[:len(b)-1], "cut in the middle": b[:len(b)/2], "longer": append(slices.Clone(b), 0),
		"changed header": flip(header - 3), "changed body": flip(len(b) / 2), "changed sum": flip(len(b) - 1),
		"newer": newer,
	} {
		dir, absent := t.TempDir(), filepath.Join(t.TempDir(), "new")
		_, err := Restore(ctx(t), bytes.NewReader(bad), RestoreConfig{Dir: dir, Logger: testLog(t)})
		_, _ = Restore(ctx(t), bytes.NewReader(bad), RestoreConfig{Dir: absent, Logger: testLog(t)})
		want := ErrBadBackup
		if name == "newer" {
			want = ErrNewer
		}
		if !errors.Is(err, want) {
			t.Errorf("%s: error %v", name, err)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("%s: left in the directory: %v, %v", name, left, err)
		}
		if exists(absent) {
			t.Errorf("%s: a directory was left", name)
		}
	}
}

// restored is a directory in which a restore was interrupted at the moment at
// which it counts.
func TestAnInterruptedRestoreIsFinishedOrForgotten(t *testing.T) {
	_, b, _, _ := backedUp(t)
	whole := t.TempDir()
	now, err := Restore(ctx(t), bytes.NewReader(b), RestoreConfig{Dir: whole, Logger: testLog(t)})
	if err != nil {
		t.Fatal(err)
	}
	for name, interrupted := range map[string]struct {
		staged []string // what had not been moved yet
		ready  bool
	}{
		"before it counts": {[]string{"etcd", identityFile}, false},
		"before any move":  {[]string{"etcd", identityFile}, true},
		"after the data":   {[]string{identityFile}, true},
		"after both":       {nil, true},
	} {
		c := config(t)
		open(t, c).close() // what is there already
		path, err := stage(c.Dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range []string{"etcd", identityFile} {
			to := filepath.Join(path, part)
			if !slices.Contains(interrupted.staged, part) {
				to = filepath.Join(c.Dir, part)
				if err := os.RemoveAll(to); err != nil {
					t.Fatal(err)
				}
			}
			if err := copyTree(ctx(t), filepath.Join(whole, part), to); err != nil {
				t.Fatal(err)
			}
		}
		if interrupted.ready {
			if err := writeFile(filepath.Join(path, "ready"), nil); err != nil {
				t.Fatal(err)
			}
		}
		f := open(t, c)
		if id, err := f.ClusterID(ctx(t)); err != nil || (id == now.ClusterID) != interrupted.ready {
			t.Errorf("%s: cluster id %s, %v", name, id, err)
		}
		if got := f.db.Snapshot().Network("19") != nil; got != interrupted.ready {
			t.Errorf("%s: has the restored objects: %v", name, got)
		}
		f.close()
	}
}

func TestOneMemberOfALostClusterGoesOnAlone(t *testing.T) {
	cs := planned(t, "a", "b", "c")
	fs := openAll(t, cs)
	term := takeTerm(fs["a"], "a", "1")
	var rev int64
	var err error
	for i := range 20 {
		rev, err = fs["a"].Create(ctx(t), network(fmt.Sprint(i)))
		fs["b"].at(rev, err)
	}
	closeAll(fs)
	c := cs["b"]
	c.Cluster = Cluster{}
	canceled, cancel := context.WithCancel(ctx(t))
	cancel()
	if _, err := Recover(canceled, c); err == nil {
		t.Fatal("it went on after its context had ended")
	}
	now, err := Recover(ctx(t), c)
	if err != nil {
		t.Fatal(err)
	}
	f := open(t, c)
	wantRestored(t, f, cs["a"].Cluster.ID, term, now)
	members, err := f.Members(ctx(t))
	if err != nil || len(members) != 1 || members[0].Name != "b" {
		t.Fatalf("members %+v, %v", members, err)
	}
	kept, err := filepath.Glob(filepath.Join(c.Dir, "etcd.replaced-*"))
	if err != nil || len(kept) != 1 {
		t.Errorf("the old data: %v, %v", kept, err)
	}
	// The others are of a cluster that it doesn't listen to.
	other := cs["a"]
	other.Cluster, other.LocalAfter = Cluster{}, time.Millisecond
	g := open(t, other)
	f.at(f.Create(ctx(t), network("n")))
	if h, _ := g.Health(); h.Quorum {
		t.Errorf("an old member has found somebody: %+v", h)
	}
}

func TestAnIdentityOfANewerVersionIsNotTouched(t *testing.T) {
	c := config(t)
	open(t, c).close()
	b, err := json.Marshal(map[string]any{"schema": 99, "cluster": map[string]string{"id": "x"}})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(c.Dir, identityFile)
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = Open(ctx(t), c, state.New())
	wantErr(t, err, ErrNewer)
	if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, b) {
		t.Errorf("%s, %v", now, err)
	}
}
