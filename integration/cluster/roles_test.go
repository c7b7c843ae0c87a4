package cluster

import (
	"encoding/binary"
	"testing"
	"time"

	"kvnet/integration/relay"
	"kvnet/integration/server"
)

var (
	one = &Member{Server: &server.Server{Config: server.Config{Name: "s1"}}}
	two = &Member{Server: &server.Server{Config: server.Config{Name: "s2"}}}
)

// script makes a record of which each frame is a second later than the one before.
type script struct{ all []sent }

func (s *script) add(m *Member, d relay.Direction, t relay.Type, xid uint32, body ...byte) *sent {
	b := make([]byte, 8, 8+len(body))
	b[1] = byte(t)
	binary.BigEndian.PutUint32(b[4:], xid)
	at := time.Unix(int64(len(s.all)), 0)
	s.all = append(s.all, sent{relay.Frame{Time: at, Switch: "gw1/br-int", Direction: d, Type: t, Bytes: append(b, body...)}, m})
	return &s.all[len(s.all)-1]
}

func (s *script) master(m *Member, generation uint64) {
	body := binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, roleMaster<<32), generation)
	s.add(m, relay.ToSwitch, relay.RoleRequest, 1, body...)
	s.add(m, relay.ToServer, relay.RoleReply, 1, body...)
}

func (s *script) equal(m *Member) {
	body := binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, roleEqual<<32), 0)
	s.add(m, relay.ToSwitch, relay.RoleRequest, 1, body...)
	s.add(m, relay.ToServer, relay.RoleReply, 1, body...)
}

func (s *script) bundle(m *Member, xid, id uint32, request uint16) {
	body := binary.BigEndian.AppendUint32(nil, 0x4f4e4600)
	body = binary.BigEndian.AppendUint32(body, 2300)
	body = binary.BigEndian.AppendUint32(body, id)
	body = binary.BigEndian.AppendUint16(body, request)
	s.add(m, relay.ToSwitch, relay.Experimenter, xid, append(body, 0, 0)...)
}

func (s *script) inBundle(m *Member, xid, id uint32) {
	body := binary.BigEndian.AppendUint32(make([]byte, 8), id)
	s.add(m, relay.ToSwitch, relay.FlowMod, xid, append(body, make([]byte, 12)...)...).BundleAdd = true
}

func TestVerdict(t *testing.T) {
	for name, c := range map[string]struct {
		play                      func(s *script)
		writes, refused, stranger int
	}{
		"the only MASTER writes": {func(s *script) {
			s.master(one, 5)
			s.add(one, relay.ToSwitch, relay.FlowMod, 7)
		}, 1, 0, 0},
		"a server that has asked for nothing writes": {func(s *script) {
			s.master(one, 5)
			s.add(two, relay.ToSwitch, relay.FlowMod, 7)
		}, 1, 0, 1},
		"an old MASTER writes, and the switch takes it": {func(s *script) {
			s.master(one, 5)
			s.master(two, 6)
			s.add(one, relay.ToSwitch, relay.GroupMod, 7)
		}, 1, 0, 1},
		"an old MASTER writes, and the switch refuses it": {func(s *script) {
			s.master(one, 5)
			s.master(two, 6)
			s.add(one, relay.ToSwitch, relay.GroupMod, 7)
			s.add(one, relay.ToServer, relay.Error, 7, 0, 1, 0, 10)
		}, 1, 1, 0},
		"an old MASTER's bundle is refused as a whole": {func(s *script) {
			s.master(one, 5)
			s.master(two, 6)
			s.bundle(one, 7, 3, relay.BundleOpen)
			s.inBundle(one, 8, 3)
			s.bundle(one, 9, 3, relay.BundleCommit)
			s.add(one, relay.ToServer, relay.Error, 9, 0, 1, 0, 10)
		}, 1, 1, 0},
		"an old MASTER's bundle is committed": {func(s *script) {
			s.master(one, 5)
			s.master(two, 6)
			s.bundle(one, 7, 3, relay.BundleOpen)
			s.inBundle(one, 8, 3)
			s.bundle(one, 9, 3, relay.BundleCommit)
		}, 1, 0, 1},
		"a bundle of before is committed when another is MASTER": {func(s *script) {
			s.master(one, 5)
			s.bundle(one, 7, 3, relay.BundleOpen)
			s.inBundle(one, 8, 3)
			s.master(two, 6)
			s.bundle(one, 9, 3, relay.BundleCommit)
		}, 1, 0, 1},
		"an error on an earlier connection says nothing about the present one": {func(s *script) {
			s.master(one, 5)
			s.add(one, relay.ToServer, relay.Error, 7, 0, 1, 0, 10)
			s.add(one, relay.ToServer, relay.Hello, 1)
			s.master(two, 6)
			s.add(one, relay.ToSwitch, relay.FlowMod, 7)
		}, 1, 0, 1},
		"the last of servers without generations writes": {func(s *script) {
			s.equal(one)
			s.equal(two)
			s.add(two, relay.ToSwitch, relay.FlowMod, 7)
		}, 1, 0, 0},
		"another server without generations writes": {func(s *script) {
			s.equal(one)
			s.equal(two)
			s.add(one, relay.ToSwitch, relay.FlowMod, 7)
		}, 1, 0, 1},
		"a bundle that is never committed": {func(s *script) {
			s.master(one, 5)
			s.bundle(one, 7, 3, relay.BundleOpen)
			s.inBundle(one, 8, 3)
		}, 1, 1, 0},
		"after a new connection the role must be asked for again": {func(s *script) {
			s.master(one, 5)
			s.add(one, relay.ToServer, relay.Hello, 1)
			s.add(one, relay.ToSwitch, relay.FlowMod, 7)
		}, 1, 0, 1},
		"another writes once the MASTER's connection has ended": {func(s *script) {
			s.master(two, 6)
			s.add(two, relay.ToServer, relay.Hello, 1)
			s.master(one, 5)
			s.add(one, relay.ToSwitch, relay.FlowMod, 7)
		}, 1, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := &script{}
			c.play(s)
			v := verdict(s.all, time.Time{})
			if v.Writes != c.writes || v.Refused != c.refused || len(v.Strangers) != c.stranger {
				t.Errorf("%d writes, %d refused, strangers: %v; want %d, %d and %d", v.Writes, v.Refused, v.Strangers, c.writes, c.refused, c.stranger)
			}
		})
	}
}
