package rest

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"

	"golang.org/x/crypto/bcrypt"

	"kvnet/internal/reread"
)

// AccountsConfig says who may use REST.
type AccountsConfig struct {
	// UsersFile has a line name:bcrypt-hash:role[,role] for each account. The
	// roles are viewer and admin; admin includes viewer. It is read again when
	// it changes.
	UsersFile string
	// AllowDefaults keeps ONOS's accounts onos/rocks (admin) and guest/guest
	// (viewer) also beside a users file and on any address. Without a users
	// file they work as long as REST listens on loopback only.
	AllowDefaults bool
}

// role is what an account may do.
type role uint8

const (
	roleViewer role = iota + 1 // reads
	roleAdmin                  // reads and writes
)

// account is somebody who may sign in. It has either a bcrypt hash or, for the
// accounts that everybody knows, a password.
type account struct {
	name     string
	role     role
	hash     []byte
	password string
}

var defaultAccounts = []account{
	{name: "onos", role: roleAdmin, password: "rocks"},
	{name: "guest", role: roleViewer, password: "guest"},
}

// accountSet is one version of the accounts. It never changes.
type accountSet struct {
	byName map[string]*account
	// decoys are the hashes that the passwords of unknown names are compared
	// with, in the order of the names: those of the accounts.
	decoys [][]byte
}

// same is the account of this version that has the name and the password of another
// version's; nil if there is none. Its role may be another one.
func (s *accountSet) same(acc *account) *account {
	if acc == nil {
		return nil
	}
	now := s.byName[acc.name]
	if now == nil || now.password != acc.password || !bytes.Equal(now.hash, acc.hash) {
		return nil
	}
	return now
}

// accounts are the present accounts.
type accounts struct {
	file     string
	defaults bool
	current  *reread.Value[*accountSet]
}

// newAccounts reads the accounts. It refuses the accounts that everybody knows
// on an address that others can reach, unless they are asked for.
func newAccounts(c AccountsConfig, listen string, log *slog.Logger) (*accounts, error) {
	a := &accounts{file: c.UsersFile, defaults: c.AllowDefaults || c.UsersFile == ""}
	if a.file == "" && !c.AllowDefaults && !isLoopback(listen) {
		return nil, fmt.Errorf("REST would listen on %s, which others can reach, with the accounts that everybody knows: "+
			"give a users file (--users-file), or allow them (--allow-default-accounts)", listen)
	}
	var files []string
	if a.file != "" {
		files = []string{a.file}
	}
	var err error
	if a.current, err = reread.New("the users file", log, a.load, files...); err != nil {
		return nil, err
	}
	if a.defaults && !isLoopback(listen) {
		log.Warn("the accounts that everybody knows (onos, guest) are allowed on an address that others can reach", "listen", listen)
	}
	return a, nil
}

// isLoopback tells whether only this host can reach the listen address.
func isLoopback(listen string) bool {
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return false
	}
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

// load makes the present version of the accounts.
func (a *accounts) load() (*accountSet, error) {
	set := &accountSet{byName: map[string]*account{}}
	if a.file != "" {
		b, err := os.ReadFile(a.file)
		if err != nil {
			return nil, err
		}
		if set.byName, err = parseUsers(b); err != nil {
			return nil, fmt.Errorf("%s: %w", a.file, err)
		}
		for _, name := range slices.Sorted(maps.Keys(set.byName)) {
			set.decoys = append(set.decoys, set.byName[name].hash)
		}
	}
	if a.defaults {
		for i := range defaultAccounts {
			if d := &defaultAccounts[i]; set.byName[d.name] == nil {
				set.byName[d.name] = d
			}
		}
	}
	return set, nil
}

// parseUsers reads the lines of a users file. Errors name the line, never what
// stands in it.
func parseUsers(b []byte) (map[string]*account, error) {
	out := map[string]*account{}
	sc := bufio.NewScanner(bytes.NewReader(b))
	for n := 1; sc.Scan(); n++ {
		line := strings.TrimSpace(sc.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		acc, err := parseUser(line)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		if out[acc.name] != nil {
			return nil, fmt.Errorf("line %d: the name stands there a second time", n)
		}
		out[acc.name] = acc
	}
	if err := sc.Err(); err != nil {
		return nil, err
	}
	if len(out) == 0 {
		return nil, errors.New("there is no account in it")
	}
	return out, nil
}

func parseUser(line string) (*account, error) {
	parts := strings.Split(line, ":")
	if len(parts) != 3 || parts[0] == "" {
		return nil, errors.New("the form is name:bcrypt-hash:role[,role]")
	}
	acc := &account{name: parts[0], hash: []byte(parts[1])}
	cost, err := bcrypt.Cost(acc.hash)
	if err != nil {
		return nil, errors.New("the second part is no bcrypt hash")
	}
	if cost > 15 {
		return nil, errors.New("the bcrypt cost is over 15: each first request of the account would take seconds")
	}
	for r := range strings.SplitSeq(parts[2], ",") {
		switch strings.TrimSpace(r) {
		case "viewer":
			acc.role = max(acc.role, roleViewer)
		case "admin":
			acc.role = roleAdmin
		default:
			return nil, errors.New("the roles are viewer and admin")
		}
	}
	return acc, nil
}

// get returns the present accounts. A users file that has changed is read again;
// one that can't be read leaves the accounts as they were.
func (a *accounts) get() *accountSet { return a.current.Get() }
