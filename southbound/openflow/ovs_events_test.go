package openflow_test

import (
	"bytes"
	"slices"
	"testing"

	"kvnet/model"
	"kvnet/southbound/flow"
	"kvnet/southbound/openflow"
	"kvnet/southbound/openflow/ovstest"
)

// pair is two bridges of a controller, p1 of br0 joined to q1 of br1.
func pair(t *testing.T) (*ovstest.Switch, *controller, *openflow.Session, *openflow.Session) {
	t.Helper()
	ovs := ovstest.Start(t)
	ovs.AddBridge("br0", 0x10, "p1")
	ovs.AddBridge("br1", 0x11, "q1")
	ovs.Connect("p1", "q1")
	c := asMaster(startOn(t, ovs.Listen(), nil))
	ovs.SetController("br0", c.addr)
	ovs.SetController("br1", c.addr)
	return ovs, c, c.master(t, 0x10), c.master(t, 0x11)
}

// packetOut sends a frame out of port 1.
func packetOut(t *testing.T, frame []byte) openflow.Message {
	t.Helper()
	m, err := openflow.PacketOut(flow.NumberedPort(1), frame)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestFrameGoesOutAndComesInAsItIs(t *testing.T) {
	_, c, s0, s1 := pair(t)
	e := encode(t, flow.Rule{Table: 0, Priority: 1, Actions: []flow.Action{flow.Output{Port: flow.Controller, MaxLen: 0xffff}}})
	if err := s1.Bundle(until(t), []openflow.Message{openflow.AddFlow(e, 0x6b00000000000077)}); err != nil {
		t.Fatal(err)
	}
	frame := make([]byte, 0, 65000)
	for i := range 65000 {
		frame = append(frame, byte(i*7))
	}
	broken := append(bytes.Repeat([]byte{2}, 12), 0x08, 0x00, 0x40) // IPv4 with a header of no words
	broken = append(broken, make([]byte, 60)...)
	for i, f := range [][]byte{frame[:60], frame[:1500], frame, broken} {
		if err := s0.Send(until(t), packetOut(t, f)); err != nil {
			t.Fatal(err)
		}
		c.wait(t, "the frame comes in", func() bool { return len(c.packets) == i+1 })
		p := c.packets[i]
		if !bytes.Equal(p.Data, f) || p.InPort != 1 || p.Cookie != 0x6b00000000000077 || int(p.TotalLen) != len(f) || p.Reason != 1 {
			t.Errorf("%d bytes in from port %d, cookie %x, reason %d", len(p.Data), p.InPort, p.Cookie, p.Reason)
		}
	}
	// In a bundle it goes out after the rules are in force.
	e.Priority = 2
	if err := s0.Bundle(until(t), []openflow.Message{openflow.AddFlow(e, 1), packetOut(t, frame[:100])}); err != nil {
		t.Fatal(err)
	}
	c.wait(t, "the frame of the bundle comes in", func() bool { return len(c.packets) == 5 })
}

func TestRemovedRulesAreReported(t *testing.T) {
	ovs, c, s := real(t)
	g := flow.Group{ID: 0x6b000001, Type: flow.GroupSelect}
	rules := []flow.Rule{rule(1, output(1)), rule(2, flow.ToGroup{ID: g.ID})}
	rules[0].Match.IPSrc = flow.Host(addr("10.0.0.1"))
	msgs := []openflow.Message{group(t, openflow.AddGroup, g)}
	for i, r := range rules {
		msgs = append(msgs, openflow.AddFlow(encode(t, r), uint64(100+i)))
	}
	if err := s.Bundle(until(t), msgs); err != nil {
		t.Fatal(err)
	}
	ovs.Ofctl("del-flows", "br0", "ip,nw_src=10.0.0.1")
	c.wait(t, "a rule is deleted", func() bool { return len(c.removed) == 1 })
	ovs.Ofctl("del-groups", "br0")
	c.wait(t, "a rule goes with its group", func() bool { return len(c.removed) == 2 })
	for i, reason := range []uint8{2, 3} {
		f := c.removed[i]
		if f.DecodeErr != nil || f.Rule.Match != rules[i].Match || f.Rule.Switch != 0x42 || f.Table != 1 || f.Priority != rules[i].Priority || f.Cookie != uint64(100+i) || f.Reason != reason {
			t.Errorf("removed %+v", f)
		}
	}
}

func TestPortsFollowTheSwitch(t *testing.T) {
	ovs, c, _ := real(t)
	ports := func() map[string]model.SwitchPort {
		out := map[string]model.SwitchPort{}
		for p := range c.db.Snapshot().SwitchPorts(0x42) {
			out[p.Name] = *p
		}
		return out
	}
	p := ports()
	if len(p) != 3 || p["p1"].Number != 1 || p["p2"].Number != 2 || !p["p1"].Enabled || p["br0"].Number != flow.Local.Number || p["p1"].MAC.IsZero() {
		t.Fatalf("ports %+v", p)
	}
	ovs.AddPort("br0", "p3", "type=patch", "options:peer=x", "ofport_request=7")
	eventually(t, "a port is added", func() bool { return ports()["p3"].Number == 7 })
	ovs.Ofctl("mod-port", "br0", "br0", "up")
	eventually(t, "a port is taken up", func() bool { return ports()["br0"].Enabled })
	ovs.Ofctl("mod-port", "br0", "br0", "down")
	eventually(t, "a port is taken down", func() bool { return !ports()["br0"].Enabled })
	ovs.DelPort("br0", "p2")
	eventually(t, "a port is removed", func() bool { _, ok := ports()["p2"]; return !ok })
	ovs.AddPort("br0", "p2", "type=patch", "options:peer=y")
	eventually(t, "a port comes back with another number", func() bool { p := ports()["p2"]; return p.Number != 0 && p.Number != 2 })

	ovs.DelController("br0")
	eventually(t, "the switch is gone", func() bool {
		sw := c.db.Snapshot().Switch(0x42)
		return sw != nil && !sw.Connected && sw.LastError != "" && len(ports()) == 0
	})
}

func TestSwitchDescribesItself(t *testing.T) {
	_, _, s := real(t)
	d, err := s.Description(until(t))
	if err != nil || d.Hardware != "Open vSwitch" || d.Manufacturer != "Nicira, Inc." {
		t.Errorf("description %+v, %v", d, err)
	}
	if err := s.Bundle(until(t), []openflow.Message{add(t, 1, output(1))}); err != nil {
		t.Fatal(err)
	}
	tables, err := s.TableStats(until(t))
	if i := slices.IndexFunc(tables, func(x openflow.TableStats) bool { return x.Table == 1 }); err != nil || i < 0 || tables[i].Active != 1 {
		t.Errorf("tables %+v, %v", tables, err)
	}
	ports, err := s.PortStats(until(t))
	if err != nil || len(ports) != 3 {
		t.Errorf("ports %+v, %v", ports, err)
	}
}
