package rest

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/bcrypt"
)

func basic(name, password string) map[string]string {
	return map[string]string{"Authorization": "Basic " + base64.StdEncoding.EncodeToString([]byte(name+":"+password))}
}

func hashOf(t testing.TB, password string) string {
	t.Helper()
	h, err := bcrypt.GenerateFromPassword([]byte(password), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	return string(h)
}

func writeUsers(t testing.TB, path string, lines ...string) {
	t.Helper()
	tmp := path + ".new"
	if err := os.WriteFile(tmp, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(tmp, path); err != nil {
		t.Fatal(err)
	}
}

func TestDefaultAccountsOnLoopbackOnly(t *testing.T) {
	users := filepath.Join(t.TempDir(), "users")
	writeUsers(t, users, "a:"+hashOf(t, "x")+":viewer")
	for _, c := range []struct {
		listen   string
		accounts AccountsConfig
		ok       bool
		defaults bool
	}{
		{"127.0.0.1:0", AccountsConfig{}, true, true},
		{"[::1]:0", AccountsConfig{}, true, true},
		{"localhost:0", AccountsConfig{}, true, true},
		{"0.0.0.0:0", AccountsConfig{}, false, false},
		{":0", AccountsConfig{}, false, false},
		{"[::]:0", AccountsConfig{}, false, false},
		{"192.0.2.1:0", AccountsConfig{}, false, false},
		{"example.org:0", AccountsConfig{}, false, false},
		{"0.0.0.0:0", AccountsConfig{AllowDefaults: true}, true, true},
		{"0.0.0.0:0", AccountsConfig{UsersFile: users}, true, false},
		{"127.0.0.1:0", AccountsConfig{UsersFile: users}, true, false},
		{"0.0.0.0:0", AccountsConfig{UsersFile: users, AllowDefaults: true}, true, true},
		{"127.0.0.1:0", AccountsConfig{UsersFile: users + ".absent"}, false, false},
	} {
		a, err := newAccounts(c.accounts, c.listen, slog.New(slog.DiscardHandler))
		if (err == nil) != c.ok {
			t.Errorf("%s %+v: %v", c.listen, c.accounts, err)
			continue
		}
		if err == nil && (a.get().byName["onos"] != nil) != c.defaults {
			t.Errorf("%s %+v: onos is known: %v", c.listen, c.accounts, !c.defaults)
		}
	}
}

func TestUsersFileLines(t *testing.T) {
	h := hashOf(t, "secret")
	for _, c := range []struct {
		text string
		want string // part of the error; "": none
	}{
		{"# comment\n\n a:" + h + ":viewer \nb:" + h + ":admin\nc:" + h + ":viewer, admin\n", ""},
		{"", "no account"},
		{"# only a comment", "no account"},
		{"a:" + h, "line 1"},
		{"a:" + h + ":viewer:x", "line 1"},
		{":" + h + ":viewer", "line 1"},
		{"a:plain:viewer", "no bcrypt hash"},
		{"a:" + h + ":root", "roles"},
		{"a:" + h + ":", "roles"},
		{"a:" + h + ":viewer\na:" + h + ":admin", "line 2"},
		{"a:" + strings.Replace(h, "$04$", "$31$", 1) + ":viewer", "cost"},
	} {
		users, err := parseUsers([]byte(c.text))
		if c.want == "" {
			if err != nil || users["a"].role != roleViewer || users["b"].role != roleAdmin || users["c"].role != roleAdmin {
				t.Errorf("%q: %v %v", c.text, users, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), h) {
			t.Errorf("%q: error %v, want one with %q and without the hash", c.text, err, c.want)
		}
	}
}

func TestRolesOfUsersFileAndItsChanges(t *testing.T) {
	users := filepath.Join(t.TempDir(), "users")
	writeUsers(t, users, "reader:"+hashOf(t, "r")+":viewer", "boss:"+hashOf(t, "b")+":admin")
	l := newLab(t, func(c *Config) { c.Accounts.UsersFile = users })
	status := func(method, path, name, password string) int {
		return l.send(method, path, basic(name, password), nil).status
	}
	for _, c := range []struct {
		method, path, name, password string
		want                         int
	}{
		{"GET", networksPath, "reader", "r", 200},
		{"DELETE", networksPath + "/x", "reader", "r", 403},
		{"GET", networksPath, "boss", "b", 200}, // admin includes viewer
		{"DELETE", networksPath + "/x", "boss", "b", 400},
		{"GET", networksPath, "boss", "r", 401},
		{"GET", networksPath, "nobody", "r", 401},
		{"GET", networksPath, "onos", "rocks", 401},
		{"GET", "/livez", "nobody", "x", 200},
	} {
		if got := status(c.method, c.path, c.name, c.password); got != c.want {
			t.Errorf("%s %s as %s:%s: %d, want %d", c.method, c.path, c.name, c.password, got, c.want)
		}
	}
	writeUsers(t, users, "reader:"+hashOf(t, "new")+":viewer")
	if a, b, c := status("GET", networksPath, "reader", "r"), status("GET", networksPath, "reader", "new"), status("GET", networksPath, "boss", "b"); a != 401 || b != 200 || c != 401 {
		t.Errorf("after the change: old password %d, new one %d, removed account %d", a, b, c)
	}
	writeUsers(t, users, "broken")
	if got := status("GET", networksPath, "reader", "new"); got != 200 {
		t.Errorf("after a broken change: %d, want 200", got)
	}
	if err := os.Remove(users); err != nil {
		t.Fatal(err)
	}
	if got := status("GET", networksPath, "reader", "new"); got != 200 {
		t.Errorf("without the file: %d, want 200", got)
	}
	writeUsers(t, users, "boss:"+hashOf(t, "b2")+":admin")
	if a, b := status("GET", networksPath, "reader", "new"), status("GET", networksPath, "boss", "b2"); a != 401 || b != 200 {
		t.Errorf("after the file came back: %d %d", a, b)
	}
}

// TestGuessesDontSlowOthers: while an address tries passwords as fast as it can,
// few of them cost a bcrypt hash, and clients that are known wait for none.
func TestGuessesDontSlowOthers(t *testing.T) {
	slow, err := bcrypt.GenerateFromPassword([]byte("right"), 9)
	if err != nil {
		t.Fatal(err)
	}
	users := filepath.Join(t.TempDir(), "users")
	writeUsers(t, users, "boss:"+string(slow)+":admin")
	a, err := newAuthenticator(AccountsConfig{UsersFile: users}, "127.0.0.1:0", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	if _, err := a.check(ctx, "boss", "right", "10.0.0.1"); err != nil {
		t.Fatal(err)
	}
	const guesses = 300
	start := time.Now()
	var wg sync.WaitGroup
	var mu sync.Mutex
	outcome := map[error]int{}
	for i := range guesses {
		wg.Go(func() {
			_, err := a.check(ctx, "boss", fmt.Sprint("guess", i), "10.0.0.66")
			mu.Lock()
			outcome[err]++
			mu.Unlock()
		})
	}
	for range 1000 {
		if acc, err := a.check(ctx, "boss", "right", "10.0.0.1"); err != nil || acc.name != "boss" {
			t.Fatalf("a known client: %v", err)
		}
	}
	wg.Wait()
	looked := outcome[errUnauthorized] + outcome[errBusy]
	if limit := guardBurst + 1 + int(guardRate*time.Since(start).Seconds()); looked > limit {
		t.Errorf("%d of %d guesses were looked at, want at most %d: %v", looked, guesses, limit, outcome)
	}
	if outcome[nil] != 0 || outcome[errThrottled] == 0 {
		t.Errorf("outcomes %v", outcome)
	}
}

func TestWrongPasswordIsRememberedToo(t *testing.T) {
	users := filepath.Join(t.TempDir(), "users")
	writeUsers(t, users, "boss:"+hashOf(t, "right")+":admin")
	a, err := newAuthenticator(AccountsConfig{UsersFile: users}, "127.0.0.1:0", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	for range 10 * guardBurst {
		if _, err := a.check(context.Background(), "boss", "wrong", "10.0.0.1"); !errors.Is(err, errUnauthorized) {
			t.Fatalf("the same wrong password again: %v", err)
		}
	}
	if _, err := a.check(context.Background(), "boss", "right", "10.0.0.1"); err != nil {
		t.Errorf("the right password after one wrong one: %v", err)
	}
	for i := range 3 * maxCredentials {
		put(a.wrong, a.key("x", fmt.Sprint(i)), struct{}{})
	}
	if len(a.wrong) > maxCredentials {
		t.Errorf("%d credentials are remembered", len(a.wrong))
	}
}

func TestSignInWaitsOnlySoLong(t *testing.T) {
	users := filepath.Join(t.TempDir(), "users")
	writeUsers(t, users, "boss:"+hashOf(t, "right")+":admin")
	l := newLab(t, func(c *Config) { c.Accounts.UsersFile = users })
	auth := l.server.auth
	auth.wait = 10 * time.Millisecond
	for range cap(auth.slots) {
		auth.slots <- struct{}{}
	}
	if r := l.send("GET", networksPath, basic("boss", "right"), nil); r.status != 503 || r.header.Get("Retry-After") == "" {
		t.Errorf("while others sign in: %d %s", r.status, r.body)
	}
	for range cap(auth.slots) {
		<-auth.slots
	}
	if r := l.send("GET", networksPath, basic("boss", "right"), nil); r.status != 200 {
		t.Errorf("afterwards: %d %s", r.status, r.body)
	}
}

// TestUnknownPathsAskForCredentials: what is not there is told only to those who
// may know.
func TestUnknownPathsAskForCredentials(t *testing.T) {
	l := newLab(t)
	for path, want := range map[string]int{
		"/onos": 401, "/onos/": 401, "/onos/x": 401, "/onos/v1/cluster": 401, "/kvnet/v1/flows": 401, "/kvnet/x": 401,
		"/%6Fnos/kubevirtnetworking/network": 401, "/onos/kubevirtnetworking/netw%6Frk/": 401,
		"/": 404, "/onosx": 404, "/x": 404, "/livez": 200, "/readyz": 200, "/livez/": 200,
	} {
		r := l.send("GET", path, nil, nil)
		if r.status != want || r.header.Get("Content-Type") != jsonType {
			t.Errorf("GET %s: %d %q %s, want %d", path, r.status, r.header.Get("Content-Type"), r.body, want)
		}
		if got := r.header.Get("WWW-Authenticate"); (got == `Basic realm="karaf"`) != (want == 401) {
			t.Errorf("GET %s: WWW-Authenticate %q", path, got)
		}
	}
	if r := l.send("POST", "/livez", nil, nil); r.status != 405 || !strings.Contains(r.header.Get("Allow"), "GET") {
		t.Errorf("POST /livez: %d, Allow %q", r.status, r.header.Get("Allow"))
	}
	if r := l.send("PATCH", networksPath, nil, nil); r.status != 401 || r.header.Get("Allow") != "" {
		t.Errorf("PATCH without credentials: %d, Allow %q", r.status, r.header.Get("Allow"))
	}
}
