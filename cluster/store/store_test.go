package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"kvnet/model"
	"kvnet/model/state"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(childEnv); dir != "" {
		if member := os.Getenv(memberEnv); member != "" {
			os.Exit(memberChild(dir, member))
		}
		os.Exit(child(dir))
	}
	code := m.Run()
	// etcd leaves connections between members behind when it stops. They end
	// when their reads time out, after 5 s.
	var leak error
	for end := time.Now().Add(30 * time.Second); code == 0 && time.Now().Before(end); {
		if leak = goleak.Find(); leak == nil {
			break
		}
	}
	if leak != nil {
		fmt.Println("after all tests:", leak)
		code = 1
	}
	os.Exit(code)
}

// fixture is a store with its tables, in a directory of its own.
type fixture struct {
	*Store
	db *state.DB
	t  testing.TB
}

// config is that of a store that other tests can't disturb: any free port, and
// no demands on the free space of the machine that tests.
func config(t testing.TB) Config {
	return Config{Dir: t.TempDir(), Listen: "127.0.0.1:0", MinFree: -1, Logger: testLog(t)}
}

// testLog writes to the test's log.
func testLog(t testing.TB) *slog.Logger {
	return slog.New(slog.NewTextHandler(t.Output(), nil))
}

func open(t testing.TB, c Config) *fixture {
	t.Helper()
	db := state.New()
	s, err := Open(ctx(t), c, db)
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{s, db, t}
	t.Cleanup(func() { f.close() })
	return f
}

func (f *fixture) close() {
	f.t.Helper()
	if err := f.Close(); err != nil {
		f.t.Errorf("close: %v", err)
	}
}

// ctx ends with the test, or after a time that only a hanging test takes.
func ctx(t testing.TB) context.Context {
	c, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	return c
}

// at waits until the tables have reached the revision of a write.
func (f *fixture) at(rev int64, err error) state.Snapshot {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
	if err := f.db.WaitRevision(ctx(f.t), rev); err != nil {
		f.t.Fatalf("revision %d never reached the tables: %v", rev, err)
	}
	return f.db.Snapshot()
}

func wantErr(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("error %v, want %v", err, want)
	}
}

func network(id string) *model.Network {
	return &model.Network{ID: id, Name: id, Type: model.NetworkFLAT, CIDR: "10.0.0.0/24", GatewayIP: netip.MustParseAddr("10.0.0.1")}
}

func router(name string) *model.Router { return &model.Router{Name: name} }

func fip(id, router string) *model.FloatingIP { return &model.FloatingIP{ID: id, RouterName: router} }

func node(host string, integration, tunnel model.DeviceID) *model.Node {
	return &model.Node{Hostname: host, IntegrationBridge: integration, TunnelBridge: tunnel}
}

func TestWrittenObjectsReachTheTables(t *testing.T) {
	f := open(t, config(t))
	n := network("n1")
	r1, err := f.Create(ctx(t), n)
	s := f.at(r1, err)
	got := s.Network("n1")
	if got == nil || got.CIDR != n.CIDR || got.GatewayIP != n.GatewayIP || got.Meta != (model.Meta{Created: r1, Modified: r1}) {
		t.Fatalf("created: %+v at %d", got, r1)
	}
	r2, err := f.Update(ctx(t), model.KindNetwork, "n1", func(o model.Object) (model.Object, error) {
		n := o.(*model.Network)
		n.MTU = 1400
		return n, nil
	})
	got = f.at(r2, err).Network("n1")
	if got.MTU != 1400 || got.Meta != (model.Meta{Created: r1, Modified: r2}) {
		t.Fatalf("updated: %+v at %d", got, r2)
	}
	r3, err := f.Delete(ctx(t), model.KindNetwork, "n1")
	if got := f.at(r3, err).Network("n1"); got != nil {
		t.Fatalf("deleted: %+v", got)
	}
	r4, err := f.Create(ctx(t), n)
	if got := f.at(r4, err).Network("n1"); got.Created != r4 {
		t.Fatalf("a new life has Created %d, want %d", got.Created, r4)
	}
}

func TestDuplicateAndAbsentObjectsAreRefused(t *testing.T) {
	f := open(t, config(t))
	f.at(f.Create(ctx(t), network("n1")))
	_, err := f.Create(ctx(t), network("n1"))
	wantErr(t, err, ErrExists)
	_, err = f.Delete(ctx(t), model.KindNetwork, "n2")
	wantErr(t, err, ErrNotFound)
	_, err = f.Update(ctx(t), model.KindNetwork, "n2", func(o model.Object) (model.Object, error) { return o, nil })
	wantErr(t, err, ErrNotFound)
	_, err = f.Create(ctx(t), &model.Switch{DPID: 1})
	if err == nil {
		t.Fatal("an observed object was stored")
	}
}

func TestAnUpdateKeepsTheName(t *testing.T) {
	f := open(t, config(t))
	f.at(f.Create(ctx(t), network("n1")))
	for _, bad := range []model.Object{network("n2"), router("n1"), nil} {
		if _, err := f.Update(ctx(t), model.KindNetwork, "n1", func(model.Object) (model.Object, error) { return bad, nil }); err == nil {
			t.Errorf("turned into %v", bad)
		}
	}
}

func TestTheCallersErrorIsReturnedUnchanged(t *testing.T) {
	f := open(t, config(t))
	f.at(f.Create(ctx(t), network("n1")))
	mine := fmt.Errorf("mine")
	if _, err := f.Update(ctx(t), model.KindNetwork, "n1", func(model.Object) (model.Object, error) { return nil, mine }); !errors.Is(err, mine) {
		t.Fatalf("error %v", err)
	}
}

func TestAnUpdateThatChangesNothingWritesNothing(t *testing.T) {
	f := open(t, config(t))
	r1, err := f.Create(ctx(t), network("n1"))
	f.at(r1, err)
	r2, err := f.Update(ctx(t), model.KindNetwork, "n1", func(o model.Object) (model.Object, error) { return o, nil })
	if err != nil || r2 != r1 {
		t.Fatalf("revision %d, %v; created at %d", r2, err, r1)
	}
}
