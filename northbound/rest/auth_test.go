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

// newTestAuthenticator knows boss:right, whose hash costs next to nothing.
func newTestAuthenticator(t *testing.T) *authenticator {
	t.Helper()
	users := filepath.Join(t.TempDir(), "users")
	writeUsers(t, users, "boss:"+hashOf(t, "right")+":admin", "other:"+hashOf(t, "too")+":viewer")
	a, err := newAuthenticator(AccountsConfig{UsersFile: users}, "127.0.0.1:0", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestGuessesHoldNobodyUp: while a hundred wrong passwords wait or are refused,
// the requests of those who have signed in pass.
func TestGuessesHoldNobodyUp(t *testing.T) {
	users := filepath.Join(t.TempDir(), "users")
	writeUsers(t, users, "boss:"+hashOf(t, "right")+":admin")
	l := newLab(t, func(c *Config) { c.Accounts.UsersFile = users })
	boss := basic("boss", "right")
	if r := l.send("GET", networksPath, boss, nil); r.status != 200 {
		t.Fatalf("%d %s", r.status, r.body)
	}
	auth := l.server.auth
	for range cap(auth.slots) { // bcrypt takes for ever
		auth.slots <- struct{}{}
	}
	const guesses = 100
	statuses := make(chan int, guesses)
	var wg sync.WaitGroup
	for i := range guesses {
		wg.Go(func() { statuses <- l.send("GET", networksPath, basic("boss", fmt.Sprint("guess", i)), nil).status })
	}
	eventually(t, "guesses wait", func() bool {
		auth.guards.mu.Lock()
		defer auth.guards.mu.Unlock()
		for _, turn := range auth.guards.turns {
			return turn.users > 0
		}
		return false
	})
	for range 200 {
		if r := l.send("GET", networksPath, boss, nil); r.status != 200 {
			t.Fatalf("a client that has signed in: %d %s", r.status, r.body)
		}
	}
	for range cap(auth.slots) {
		<-auth.slots
	}
	wg.Wait()
	close(statuses)
	for status := range statuses {
		if status != 401 && status != 503 {
			t.Errorf("a guess: %d", status)
		}
	}
	auth.guards.mu.Lock()
	defer auth.guards.mu.Unlock()
	if n := len(auth.guards.turns); n != 0 {
		t.Errorf("%d addresses still wait", n)
	}
}

// TestOneAddressComputesOneHash: however many guesses an address sends, others
// get the next place.
func TestOneAddressComputesOneHash(t *testing.T) {
	a := newTestAuthenticator(t)
	a.slots = make(chan struct{}, 2)
	guessing, goOn := make(chan struct{}, 100), make(chan struct{})
	a.bcrypt = func(hash, password []byte) error {
		if strings.HasPrefix(string(password), "guess") {
			guessing <- struct{}{}
			<-goOn
		}
		return bcrypt.CompareHashAndPassword(hash, password)
	}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() { _, _ = a.check(context.Background(), "boss", fmt.Sprint("guess", i), "10.0.0.66") })
	}
	<-guessing
	eventually(t, "the other guesses wait", func() bool {
		a.guards.mu.Lock()
		defer a.guards.mu.Unlock()
		return a.guards.turns[a.key("10.0.0.66", "")].users == 8
	})
	if acc, err := a.check(context.Background(), "boss", "right", "10.0.0.1"); err != nil || acc.name != "boss" {
		t.Errorf("another address: %v", err)
	}
	if n := len(guessing); n != 0 {
		t.Errorf("%d more guesses are looked at", n)
	}
	close(goOn)
	wg.Wait()
}

// TestGuessesAreCounted by address, and by name there, and for names that don't
// exist as for those that do.
func TestGuessesAreCounted(t *testing.T) {
	now := time.Now()
	burst := func(g *guards, from string, name func(i int) string) (n int) {
		for i := range 100 {
			if g.mayGuess(credentialKey{from[0]}, credentialKey{from[0], name(i)[0]}, now) {
				n++
			}
		}
		return n
	}
	g := newGuards()
	one := func(int) string { return "x" }
	many := func(i int) string { return string(rune('0' + i)) }
	if n := burst(g, "a", one); n != guardBurst {
		t.Errorf("%d guesses for one name", n)
	}
	if n := burst(g, "b", many); n != guardNames*guardBurst {
		t.Errorf("%d guesses for many names", n)
	}
	now = now.Add(time.Second)
	if n := burst(g, "a", one); n != guardRate {
		t.Errorf("%d guesses for one name a second later", n)
	}
	if n := len(g.names); n > 1+guardNames*guardBurst {
		t.Errorf("%d names are counted", n)
	}
}

// TestUnknownNamesAreCompared: a password for a name that doesn't exist costs as
// much as one for a name that does, and always the same.
func TestUnknownNamesAreCompared(t *testing.T) {
	a := newTestAuthenticator(t)
	var hashes []string
	a.bcrypt = func(hash, _ []byte) error {
		hashes = append(hashes, string(hash))
		return bcrypt.ErrMismatchedHashAndPassword
	}
	seen := map[string]bool{}
	for i := range 40 {
		from := fmt.Sprintf("10.0.0.%d", i)
		for _, password := range []string{"a", "b"} {
			if _, err := a.check(context.Background(), fmt.Sprint("nobody", i), password, from); !errors.Is(err, errUnauthorized) {
				t.Fatal(err)
			}
		}
		if len(hashes) != 2 || hashes[0] != hashes[1] {
			t.Fatalf("name %d was compared with %q", i, hashes)
		}
		seen[hashes[0]] = true
		hashes = nil
	}
	if len(seen) != 2 {
		t.Errorf("the decoys are %d of the two hashes", len(seen))
	}
}

func TestSourcesOfAddresses(t *testing.T) {
	for in, want := range map[string]string{
		"10.0.0.1:5":                "10.0.0.1",
		"[::ffff:10.0.0.1]:5":       "10.0.0.1",
		"[2001:db8:1:2:3:4:5:6]:5":  "2001:db8:1:2::/64",
		"[2001:db8:1:2:ffff::1]:80": "2001:db8:1:2::/64",
		"[fe80::1%eth0]:80":         "fe80::/64",
		"[::1]:80":                  "::1",
		"@":                         "@",
	} {
		if got := sourceOf(in); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}

func TestWrongPasswordIsRememberedToo(t *testing.T) {
	a := newTestAuthenticator(t)
	for range 10 * guardBurst {
		if _, err := a.check(context.Background(), "boss", "wrong", "10.0.0.1"); !errors.Is(err, errUnauthorized) {
			t.Fatalf("the same wrong password again: %v", err)
		}
	}
	if _, err := a.check(context.Background(), "boss", "right", "10.0.0.1"); err != nil {
		t.Errorf("the right password after one wrong one: %v", err)
	}
	for i := range 3 * maxCredentials {
		put(a.wrong, a.key("x", fmt.Sprint(i)), nil)
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

// TestUnchangedLinesStayKnown: a change of the users file makes nobody sign in anew
// whose line is the same, be it in another role, and forgets what it must.
func TestUnchangedLinesStayKnown(t *testing.T) {
	a := newTestAuthenticator(t)
	users := a.accounts.file
	hash := string(a.accounts.get().byName["boss"].hash)
	const from = "10.0.0.1"
	sign := func(name, password string) (*account, error) {
		return a.check(context.Background(), name, password, from)
	}
	for _, c := range [][2]string{{"boss", "right"}, {"boss", "wrong"}, {"other", "too"}, {"other", "new"}, {"nobody", "x"}} {
		_, _ = sign(c[0], c[1])
	}
	computed := 0
	a.bcrypt = func(hash, password []byte) error {
		computed++
		return bcrypt.CompareHashAndPassword(hash, password)
	}
	writeUsers(t, users, "boss:"+hash+":viewer", "other:"+hashOf(t, "new")+":viewer", "nobody:"+hashOf(t, "x")+":viewer")
	if acc, err := sign("boss", "right"); err != nil || acc.role != roleViewer || computed != 0 {
		t.Errorf("the same line in another role: %+v, error %v, %d hashes computed", acc, err, computed)
	}
	if _, err := sign("boss", "wrong"); !errors.Is(err, errUnauthorized) || computed != 0 {
		t.Errorf("a wrong password for the same line: %v, %d hashes computed", err, computed)
	}
	if _, err := sign("other", "too"); !errors.Is(err, errUnauthorized) {
		t.Errorf("the former password: %v", err)
	}
	if _, err := sign("other", "new"); err != nil {
		t.Errorf("the new password, which was wrong before: %v", err)
	}
	if _, err := sign("nobody", "x"); err != nil {
		t.Errorf("an account that is new: %v", err)
	}
	writeUsers(t, users, "other:"+hash+":viewer")
	if _, err := sign("boss", "right"); !errors.Is(err, errUnauthorized) {
		t.Errorf("an account that is gone: %v", err)
	}
}
