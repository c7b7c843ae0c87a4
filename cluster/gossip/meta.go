package gossip

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/hashicorp/memberlist"
)

// Meta is what a server tells the others about itself.
type Meta struct {
	// ClusterID is the id of its cluster; empty while it belongs to none.
	ClusterID string
	// Instance is a random number for this life of the process.
	Instance uint64
	// REST, OpenFlow and PeerURL are where it serves clients, switches and the
	// stores of other servers.
	REST, OpenFlow, PeerURL string
	// Version is the version of kvnet.
	Version string
	// HasData says that its store holds data already.
	HasData bool
	// Expect is the number of servers that shall found a cluster together; 0: it
	// founds none.
	Expect int
}

// The encoded form: a version, flags, Expect as a varint, the instance, and each
// string with its length before it. What follows after the last string is of a
// later version and left alone.
const (
	metaVersion   = 1
	metaHasData   = 1 << 0
	maxExpect     = 1 << 10
	maxMetaString = 255
)

var errMeta = errors.New("unreadable metadata")

func (m *Meta) strings() []*string {
	return []*string{&m.ClusterID, &m.REST, &m.OpenFlow, &m.PeerURL, &m.Version}
}

var metaNames = []string{"cluster id", "REST address", "OpenFlow address", "peer URL", "version"}

func (m Meta) encode() ([]byte, error) {
	if m.Expect < 0 || m.Expect > maxExpect {
		return nil, fmt.Errorf("%d servers can't be expected", m.Expect)
	}
	var flags byte
	if m.HasData {
		flags |= metaHasData
	}
	b := binary.AppendUvarint([]byte{metaVersion, flags}, uint64(m.Expect))
	b = binary.BigEndian.AppendUint64(b, m.Instance)
	for i, s := range m.strings() {
		if len(*s) > maxMetaString || !printable(*s) {
			return nil, fmt.Errorf("%s: %d bytes that can't be told to others", metaNames[i], len(*s))
		}
		b = append(append(b, byte(len(*s))), *s...)
	}
	if len(b) > memberlist.MetaMaxSize {
		return nil, fmt.Errorf("addresses, version and cluster id take %d bytes together; at most %d are possible", len(b), memberlist.MetaMaxSize)
	}
	return b, nil
}

func decodeMeta(b []byte) (Meta, error) {
	var m Meta
	if len(b) > memberlist.MetaMaxSize {
		return m, fmt.Errorf("%w: %d bytes", errMeta, len(b))
	}
	if len(b) < 2 {
		return m, fmt.Errorf("%w: too short", errMeta)
	}
	if b[0] != metaVersion {
		return m, fmt.Errorf("%w: version %d", errMeta, b[0])
	}
	m.HasData = b[1]&metaHasData != 0
	expect, n := binary.Uvarint(b[2:])
	if n <= 0 || expect > maxExpect {
		return m, fmt.Errorf("%w: number of expected servers", errMeta)
	}
	m.Expect = int(expect)
	b = b[2+n:]
	if len(b) < 8 {
		return m, fmt.Errorf("%w: too short", errMeta)
	}
	m.Instance = binary.BigEndian.Uint64(b)
	b = b[8:]
	for i, s := range m.strings() {
		var ok bool
		if *s, b, ok = cutString(b); !ok || !printable(*s) {
			return Meta{}, fmt.Errorf("%w: %s", errMeta, metaNames[i])
		}
	}
	return m, nil
}

// cutString takes a string with its length in one byte from the front of b.
func cutString(b []byte) (s string, rest []byte, ok bool) {
	if len(b) < 1 || len(b) < 1+int(b[0]) {
		return "", nil, false
	}
	n := 1 + int(b[0])
	return string(b[1:n]), b[n:], true
}
