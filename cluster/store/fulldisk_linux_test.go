package store

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"kvnet/model/state"
)

// The reserve of Config.MinFree keeps it from coming to this, unless something
// else fills the disk faster than it is looked at.
func TestADiskThatIsReallyFullLosesNothing(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=160m"); err != nil {
		if errors.Is(err, syscall.EPERM) {
			t.Fatal("a small disk can be mounted by root only: run this test as root")
		}
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	cmd := exec.CommandContext(ctx(t), os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+dir, childJobEnv+"=fill")
	cmd.Stderr = t.Output()
	out, err := cmd.Output()
	if err == nil || cmd.ProcessState.ExitCode() != 1 {
		t.Fatalf("the child ended with %v", err)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	last := lines[len(lines)-1]
	if !strings.HasPrefix(last, "error true ") {
		t.Fatalf("a full disk is told as %q", last)
	}

	if err := syscall.Mount("", dir, "", syscall.MS_REMOUNT, "size=600m"); err != nil {
		t.Fatal(err)
	}
	c := config(t)
	c.Dir = dir
	f := &fixture{nil, state.New(), t}
	if f.Store, err = Open(ctx(t), c, f.db); err != nil {
		t.Fatal(err)
	}
	defer f.close()
	for _, l := range lines[:len(lines)-1] {
		if id := strings.TrimPrefix(l, "create "); f.db.Snapshot().Network(id) == nil {
			t.Errorf("network %s was acknowledged and is lost", id)
		}
	}
	t.Logf("%d objects, then: %s", len(lines)-1, last)
	f.at(f.Create(ctx(t), network("after")))
}
