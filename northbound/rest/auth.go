package rest

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"errors"
	"log/slog"
	"net/http"
	"runtime"
	"sync"
	"time"

	"golang.org/x/crypto/bcrypt"
)

// credentialKey stands for a name with a password: a hash under a key that lives
// and dies with this process.
type credentialKey [sha256.Size]byte

// authenticator says who a request comes from. bcrypt is slow on purpose, so
// what it found out is remembered, few run at a time, and an address that guesses
// is soon answered without it: guesses can't take the processor from the others.
type authenticator struct {
	accounts *accounts
	secret   []byte
	bcrypt   func(hash, password []byte) error
	slots    chan struct{} // taken by whoever computes a bcrypt hash
	wait     time.Duration // for a slot

	guards *guards

	mu    sync.Mutex
	set   *accountSet // the version of the accounts that right and wrong are about
	right map[credentialKey]*account
	wrong map[credentialKey]*account // nil for a name that there isn't
}

// maxCredentials bounds what is remembered about credentials and addresses.
const maxCredentials = 1024

var (
	errUnauthorized = errors.New("the name or the password is wrong")
	errThrottled    = errors.New("too many wrong passwords from here; wait a second")
	errBusy         = errors.New("too many sign-ins at a time; wait a second")
)

func newAuthenticator(c AccountsConfig, listen string, log *slog.Logger) (*authenticator, error) {
	acc, err := newAccounts(c, listen, log)
	if err != nil {
		return nil, err
	}
	a := &authenticator{
		accounts: acc,
		secret:   make([]byte, 32),
		bcrypt:   bcrypt.CompareHashAndPassword,
		slots:    make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2)),
		wait:     3 * time.Second,
		right:    map[credentialKey]*account{},
		wrong:    map[credentialKey]*account{},
		guards:   newGuards(),
	}
	if _, err := rand.Read(a.secret); err != nil {
		return nil, err
	}
	return a, nil
}

// request says who the request comes from.
func (a *authenticator) request(r *http.Request) (*account, error) {
	name, password, ok := r.BasicAuth()
	if !ok {
		return nil, errors.New("this needs a name and a password (HTTP Basic)")
	}
	return a.check(r.Context(), name, password, r.RemoteAddr)
}

// check says whose name and password these are; from is the address and port that
// they come from.
func (a *authenticator) check(ctx context.Context, name, password, from string) (*account, error) {
	set := a.accounts.get()
	acc := set.byName[name]
	if acc != nil && acc.hash == nil {
		if subtle.ConstantTimeCompare([]byte(acc.password), []byte(password)) == 1 {
			return acc, nil
		}
		return nil, errUnauthorized
	}
	key := a.key(name, password)
	if acc, known := a.remembered(key, set); known {
		if acc == nil {
			return nil, errUnauthorized
		}
		return acc, nil
	}

	// Unknown names take as long as known ones, so that an answer doesn't tell
	// which names there are.
	hash := a.decoy(set, name)
	if acc != nil {
		hash = acc.hash
	}
	if hash == nil {
		return nil, errUnauthorized
	}
	from = sourceOf(from)
	source := a.key(from, "")
	if !a.guards.mayGuess(source, a.key(from, name), time.Now()) {
		return nil, errThrottled
	}
	right, err := a.compare(ctx, source, hash, password)
	if err != nil {
		return nil, err
	}
	right = right && acc != nil
	a.remember(key, set, acc, right)
	if !right {
		return nil, errUnauthorized
	}
	return acc, nil
}

// holds tells whether who has signed in may still do so: the account is there, with
// the same password.
func (a *authenticator) holds(acc *account) bool { return a.accounts.get().same(acc) != nil }

// decoy is the hash that the password of an unknown name is compared with: always
// the same for a name, and one of those that accounts have, since hashes may
// differ in their cost. It is nil if no account has a hash.
func (a *authenticator) decoy(set *accountSet, name string) []byte {
	if len(set.decoys) == 0 {
		return nil
	}
	k := a.key("decoy", name)
	return set.decoys[binary.BigEndian.Uint64(k[:])%uint64(len(set.decoys))]
}

// key hashes two texts so that no other two give the same.
func (a *authenticator) key(x, y string) credentialKey {
	h := hmac.New(sha256.New, a.secret)
	var n [8]byte
	binary.BigEndian.PutUint64(n[:], uint64(len(x)))
	h.Write(n[:])
	h.Write([]byte(x))
	h.Write([]byte(y))
	return credentialKey(h.Sum(nil))
}

// remembered says what is known about a credential for this version of the
// accounts; the account is nil if it is wrong. With another version only what is
// known about unchanged lines stays: a change of one account must not make all
// others sign in again, perhaps amid a flood of guesses.
func (a *authenticator) remembered(key credentialKey, set *accountSet) (acc *account, known bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.set != set {
		carry(a.right, set)
		carry(a.wrong, set)
		a.set = set
	}
	if acc := a.right[key]; acc != nil {
		return acc, true
	}
	_, wrong := a.wrong[key]
	return nil, wrong
}

// carry takes verdicts over to another version of the accounts, and drops those
// about names that are new or gone or have another hash.
func carry(verdicts map[credentialKey]*account, set *accountSet) {
	for k, acc := range verdicts {
		if now := set.same(acc); now != nil {
			verdicts[k] = now
		} else {
			delete(verdicts, k)
		}
	}
}

// remember keeps what was found out about a credential, unless its line has
// changed meanwhile.
func (a *authenticator) remember(key credentialKey, set *accountSet, acc *account, right bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.set != set {
		if acc = a.set.same(acc); acc == nil {
			return
		}
	}
	if right {
		put(a.right, key, acc)
	} else {
		put(a.wrong, key, acc)
	}
}

// put stores into a map that never grows beyond maxCredentials; a random other
// entry goes.
func put[V any](m map[credentialKey]V, k credentialKey, v V) {
	if _, ok := m[k]; !ok && len(m) >= maxCredentials {
		for x := range m {
			delete(m, x)
			break
		}
	}
	m[k] = v
}

// compare computes a bcrypt hash as soon as it is its turn: first among those of
// the same address, then among all.
func (a *authenticator) compare(ctx context.Context, source credentialKey, hash []byte, password string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, a.wait)
	defer cancel()
	leave, err := a.guards.enter(ctx, source)
	if err != nil {
		return false, err
	}
	defer leave()
	select {
	case a.slots <- struct{}{}:
		defer func() { <-a.slots }()
	case <-ctx.Done():
		return false, errBusy
	}
	return a.bcrypt(hash, []byte(password)) == nil, nil
}
