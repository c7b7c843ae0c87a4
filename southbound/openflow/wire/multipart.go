package wire

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"kvnet/model"
	"kvnet/southbound/flow"
)

// Types of multipart messages (OpenFlow 1.3.5, section 7.3.5).
const (
	MultipartDesc       uint16 = 0
	MultipartFlow       uint16 = 1
	MultipartTable      uint16 = 3
	MultipartPortStats  uint16 = 4
	MultipartGroupStats uint16 = 6
	MultipartGroupDesc  uint16 = 7
	MultipartPortDesc   uint16 = 13
)

// AnyPort, AnyGroup and AllTables select everything.
const (
	AnyPort   uint32 = 0xffffffff
	AnyGroup  uint32 = 0xffffffff
	AllGroups uint32 = 0xfffffffc
	AllTables uint8  = 0xff
)

// DecodeMultipart splits one part of a MULTIPART_REPLY. The body aliases b.
func DecodeMultipart(b []byte) (typ uint16, more bool, body []byte, err error) {
	r, _, err := message(b, TypeMultipartReply)
	if err != nil {
		return 0, false, nil, fmt.Errorf("decode a multipart reply: %w", err)
	}
	typ, more = r.u16(), r.u16()&1 != 0
	r.skip(4)
	body = r.rest()
	if r.err != nil {
		return 0, false, nil, fmt.Errorf("decode a multipart reply: %w", r.err)
	}
	return typ, more, body, nil
}

// Desc describes a switch.
type Desc struct{ Manufacturer, Hardware, Software, Serial, Datapath string }

// DecodeDesc decodes the body of a DESC reply.
func DecodeDesc(b []byte) (Desc, error) {
	r := &reader{b: b}
	text := func(n int) string {
		s, _, _ := bytes.Cut(r.take(n), []byte{0})
		return string(s)
	}
	d := Desc{text(256), text(256), text(256), text(32), text(256)}
	if r.err != nil {
		return Desc{}, fmt.Errorf("decode a description: %w", r.err)
	}
	return d, nil
}

// DecodePorts decodes the body of a PORT_DESC reply.
func DecodePorts(b []byte) ([]model.SwitchPort, error) {
	r := &reader{b: b}
	var out []model.SwitchPort
	for r.more() {
		out = append(out, r.port())
	}
	if r.err != nil {
		return nil, fmt.Errorf("decode descriptions of ports: %w", r.err)
	}
	return out, nil
}

// DecodeFlows decodes the body of a FLOW reply.
func DecodeFlows(b []byte) ([]FlowEntry, error) {
	r := &reader{b: b}
	var out []FlowEntry
	for r.more() {
		n := int(r.u16())
		e := r.sub(n - 2)
		f := e.flowEntry()
		if e.err != nil {
			r.fail("%w", e.err)
		}
		out = append(out, f)
	}
	if r.err != nil {
		return nil, fmt.Errorf("decode flow entries: %w", r.err)
	}
	return out, nil
}

// flowEntry reads what follows the length of an entry.
func (r *reader) flowEntry() FlowEntry {
	f := FlowEntry{Table: r.u8()}
	r.skip(1)
	f.Duration = r.duration()
	f.Priority = r.u16()
	idle, hard := r.u16(), r.u16()
	f.Flags = r.u16()
	r.skip(4)
	f.Cookie, f.Packets, f.Bytes = r.u64(), r.u64(), r.u64()
	f.Rule = flow.Rule{Table: f.Table, Priority: f.Priority}
	raw, m, err := r.match()
	// One allocation holds both, so that an entry is a copy of its own.
	own := slices.Concat(raw, r.rest())
	if r.err != nil {
		return f
	}
	f.MatchBytes, f.InstructionBytes = own[:len(raw):len(raw)], own[len(raw):]
	var actions []flow.Action
	var table uint8
	if err == nil {
		actions, table, err = DecodeInstructions(f.InstructionBytes)
	}
	if err == nil && (idle != 0 || hard != 0) {
		err = fmt.Errorf("the rule has timeouts (idle %d s, hard %d s)", idle, hard)
	}
	rule := flow.Rule{Table: f.Table, Priority: f.Priority, Match: m, Actions: actions, Goto: table}
	if err == nil {
		err = rule.Validate()
	}
	if err != nil {
		f.DecodeErr = fmt.Errorf("decode the rule of table %d, priority %d: %w", f.Table, f.Priority, err)
		return f
	}
	f.Rule = rule
	return f
}

func (r *reader) duration() time.Duration {
	return time.Duration(r.u32())*time.Second + time.Duration(r.u32())
}

// DecodeGroups decodes the body of a GROUP_DESC reply.
func DecodeGroups(b []byte) ([]GroupEntry, error) {
	r := &reader{b: b}
	var out []GroupEntry
	for r.more() {
		n := int(r.u16())
		body := r.sub(n - 2)
		typ := body.u8()
		body.skip(1)
		g := GroupEntry{Group: flow.Group{ID: body.u32()}}
		if body.err != nil {
			r.fail("%w", body.err)
			break
		}
		g.Group.Type = flow.GroupType(typ)
		g.Group.Buckets, g.DecodeErr = decodeBuckets(body)
		if g.DecodeErr == nil {
			g.DecodeErr = g.Group.Validate()
		}
		if g.DecodeErr != nil {
			g = GroupEntry{flow.Group{ID: g.Group.ID}, fmt.Errorf("decode group 0x%08x: %w", g.Group.ID, g.DecodeErr)}
		}
		out = append(out, g)
	}
	if r.err != nil {
		return nil, fmt.Errorf("decode descriptions of groups: %w", r.err)
	}
	return out, nil
}

// DecodeBuckets decodes a list of buckets.
func DecodeBuckets(b []byte) ([]flow.Bucket, error) { return decodeBuckets(&reader{b: b}) }

func decodeBuckets(r *reader) ([]flow.Bucket, error) {
	var out []flow.Bucket
	for r.more() {
		n := int(r.u16())
		b := r.sub(n - 2)
		bucket := flow.Bucket{Weight: b.u16()}
		port, group := b.u32(), b.u32()
		b.skip(4)
		if b.err != nil {
			return nil, b.err
		}
		if port != AnyPort || group != AnyGroup {
			return nil, fmt.Errorf("bucket that watches port %d or group %d", port, group)
		}
		var err error
		if bucket.Actions, err = decodeActions(b); err != nil {
			return nil, err
		}
		out = append(out, bucket)
	}
	return out, r.err
}

// DecodeGroupStats decodes the body of a GROUP reply.
func DecodeGroupStats(b []byte) ([]GroupStats, error) {
	r := &reader{b: b}
	var out []GroupStats
	for r.more() {
		n := int(r.u16())
		body := r.sub(n - 2)
		body.skip(2)
		g := GroupStats{ID: body.u32()}
		body.skip(4 + 4)
		g.Packets, g.Bytes, g.Duration = body.u64(), body.u64(), body.duration()
		for body.more() {
			g.Buckets = append(g.Buckets, BucketStats{body.u64(), body.u64()})
		}
		if body.err != nil {
			r.fail("%w", body.err)
		}
		out = append(out, g)
	}
	if r.err != nil {
		return nil, fmt.Errorf("decode statistics of groups: %w", r.err)
	}
	return out, nil
}

// PortStats are the counters of a port.
type PortStats struct {
	Number                                             uint32
	RxPackets, TxPackets, RxBytes, TxBytes             uint64
	RxDropped, TxDropped, RxErrors, TxErrors           uint64
	RxFrameErrors, RxOverErrors, RxCRCErrs, Collisions uint64
	Duration                                           time.Duration
}

// DecodePortStats decodes the body of a PORT_STATS reply.
func DecodePortStats(b []byte) ([]PortStats, error) {
	r := &reader{b: b}
	var out []PortStats
	for r.more() {
		p := PortStats{Number: r.u32()}
		r.skip(4)
		for _, c := range []*uint64{&p.RxPackets, &p.TxPackets, &p.RxBytes, &p.TxBytes, &p.RxDropped, &p.TxDropped,
			&p.RxErrors, &p.TxErrors, &p.RxFrameErrors, &p.RxOverErrors, &p.RxCRCErrs, &p.Collisions} {
			*c = r.u64()
		}
		p.Duration = r.duration()
		out = append(out, p)
	}
	if r.err != nil {
		return nil, fmt.Errorf("decode statistics of ports: %w", r.err)
	}
	return out, nil
}

// TableStats are the counters of a table.
type TableStats struct {
	Table            uint8
	Active           uint32
	Lookups, Matched uint64
}

// DecodeTableStats decodes the body of a TABLE reply.
func DecodeTableStats(b []byte) ([]TableStats, error) {
	r := &reader{b: b}
	var out []TableStats
	for r.more() {
		t := TableStats{Table: r.u8()}
		r.skip(3)
		t.Active, t.Lookups, t.Matched = r.u32(), r.u64(), r.u64()
		out = append(out, t)
	}
	if r.err != nil {
		return nil, fmt.Errorf("decode statistics of tables: %w", r.err)
	}
	return out, nil
}
