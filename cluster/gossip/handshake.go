package gossip

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// identity is what a server proves at the start of a session.
type identity struct {
	name     string
	instance uint64
	key      []byte
}

// A session starts with a hello from each side and the proof that each side
// knows the key: an HMAC over both hellos, which hold a random number each, so
// that no recorded proof fits again. The two sides' proofs are made under
// different labels, so that none can be sent back.
const (
	// sessionMagic begins a session. It is none of memberlist's message types.
	sessionMagic   = 0xd3
	sessionVersion = 1
	nonceSize      = 32
	dialLabel      = "kvnet session: who dialled"
	acceptLabel    = "kvnet session: who was dialled"
)

var (
	errNoProof  = errors.New("it has not proved that it knows the gossip key")
	errNoHello  = errors.New("it does not speak the protocol of sessions")
	errStranger = errors.New("another server answered at the address")
)

// hello is what each side says first: version, name, instance, random number.
func (id identity) hello() []byte {
	b := []byte{sessionVersion, byte(len(id.name))}
	b = append(b, id.name...)
	b = binary.BigEndian.AppendUint64(b, id.instance)
	nonce := make([]byte, nonceSize)
	_, _ = rand.Read(nonce) // never fails
	return append(b, nonce...)
}

// readHello reads the other side's hello, and returns it as it was sent too.
func readHello(r io.Reader) (name string, instance uint64, raw []byte, err error) {
	head := make([]byte, 2)
	if _, err := io.ReadFull(r, head); err != nil {
		return "", 0, nil, fmt.Errorf("%w: %w", errNoHello, err)
	}
	if head[0] != sessionVersion {
		return "", 0, nil, fmt.Errorf("%w: version %d", errNoHello, head[0])
	}
	n := int(head[1])
	rest := make([]byte, n+8+nonceSize)
	if _, err := io.ReadFull(r, rest); err != nil {
		return "", 0, nil, fmt.Errorf("%w: %w", errNoHello, err)
	}
	name = string(rest[:n])
	if err := checkName(name); err != nil {
		return "", 0, nil, fmt.Errorf("%w: %w", errNoHello, err)
	}
	return name, binary.BigEndian.Uint64(rest[n:]), append(head, rest...), nil
}

func (id identity) proof(label string, dialled, accepted []byte) []byte {
	h := hmac.New(sha256.New, id.key)
	h.Write([]byte(label))
	h.Write(dialled)
	h.Write(accepted)
	return h.Sum(nil)
}

func (id identity) checkProof(r io.Reader, label string, dialled, accepted []byte) error {
	got := make([]byte, sha256.Size)
	if _, err := io.ReadFull(r, got); err != nil {
		return fmt.Errorf("%w: %w", errNoProof, err)
	}
	if !hmac.Equal(got, id.proof(label, dialled, accepted)) {
		return errNoProof
	}
	return nil
}

// dialHandshake is the side of the server that dialled, which expects the server
// name. It returns that one's instance.
func dialHandshake(c io.ReadWriter, id identity, want string) (instance uint64, err error) {
	mine := id.hello()
	if _, err := c.Write(append([]byte{sessionMagic}, mine...)); err != nil {
		return 0, fmt.Errorf("open a session: %w", err)
	}
	name, instance, theirs, err := readHello(c)
	if err != nil {
		return 0, err
	}
	if err := id.checkProof(c, acceptLabel, mine, theirs); err != nil {
		return 0, err
	}
	if name != want {
		return 0, errStranger
	}
	if _, err := c.Write(id.proof(dialLabel, mine, theirs)); err != nil {
		return 0, fmt.Errorf("open a session: %w", err)
	}
	return instance, nil
}

// acceptHandshake is the side of the server that was dialled, after the first
// byte. It returns who dialled; the name also if the proof failed.
func acceptHandshake(c io.ReadWriter, id identity) (name string, instance uint64, err error) {
	name, instance, theirs, err := readHello(c)
	if err != nil {
		return "", 0, err
	}
	if name == id.name {
		return name, 0, errStranger
	}
	mine := id.hello()
	if _, err := c.Write(append(mine, id.proof(acceptLabel, theirs, mine)...)); err != nil {
		return name, 0, fmt.Errorf("open a session: %w", err)
	}
	if err := id.checkProof(c, dialLabel, theirs, mine); err != nil {
		return name, 0, err
	}
	return name, instance, nil
}
