package wire

import (
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	"kvnet/southbound/flow"
)

func unhex(s string) []byte {
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		panic(err)
	}
	return b
}

// matchOf makes a match of fields.
func matchOf(fields string) []byte {
	f := unhex(fields)
	n := 4 + len(f)
	b := append([]byte{0, 1, byte(n >> 8), byte(n)}, f...)
	return append(b, make([]byte, pad8(n))...)
}

func TestRealMessagesAreDecoded(t *testing.T) {
	for _, m := range realMessages(t) {
		var err error
		switch m[1] {
		case TypeHello:
			_, err = DecodeHello(m)
		case TypeError:
			var e Error
			if e, err = DecodeError(m); strings.Contains(e.Text(), "code") || strings.Contains(e.Text(), "EXPERIMENTER") {
				t.Errorf("error without a name: %s", e.Text())
			}
		case TypeFeaturesReply:
			_, err = DecodeFeatures(m)
		case TypeExperimenter:
			var e Experimenter
			if e, err = DecodeExperimenter(m); e.Bundle == nil && e.RoleStatus == nil {
				t.Errorf("unknown experimenter's message %x", m)
			}
		case TypePacketIn:
			_, err = DecodePacketIn(m)
		case TypeFlowRemoved:
			var f FlowRemoved
			if f, err = DecodeFlowRemoved(m); err == nil {
				err = f.DecodeErr
			}
		case TypePortStatus:
			_, err = DecodePortStatus(m)
		case TypeRoleReply:
			_, err = DecodeRoleReply(m)
		case TypeMultipartReply:
			err = decodeBody(m)
		case TypeBarrierReply:
		default:
			t.Errorf("message of type %d isn't tested", m[1])
		}
		if err != nil {
			t.Errorf("%x: %v", m, err)
		}
	}
}

func decodeBody(m []byte) error {
	typ, _, body, err := DecodeMultipart(m)
	if err != nil {
		return err
	}
	switch typ {
	case MultipartDesc:
		_, err = DecodeDesc(body)
	case MultipartFlow:
		var f []FlowEntry
		if f, err = DecodeFlows(body); err == nil {
			err = f[0].DecodeErr
		}
	case MultipartGroupDesc:
		_, err = DecodeGroups(body)
	case MultipartGroupStats:
		_, err = DecodeGroupStats(body)
	case MultipartPortDesc:
		_, err = DecodePorts(body)
	case MultipartPortStats:
		_, err = DecodePortStats(body)
	case MultipartTable:
		_, err = DecodeTableStats(body)
	default:
		err = errors.New("type isn't tested")
	}
	return err
}

// TestEveryCutIsAnError cuts real messages at each length.
func TestEveryCutIsAnError(t *testing.T) {
	decoders := map[uint8]func([]byte) error{
		TypeFeaturesReply: func(b []byte) error { _, err := DecodeFeatures(b); return err },
		TypeFlowRemoved:   func(b []byte) error { _, err := DecodeFlowRemoved(b); return err },
		TypePortStatus:    func(b []byte) error { _, err := DecodePortStatus(b); return err },
		TypeRoleReply:     func(b []byte) error { _, err := DecodeRoleReply(b); return err },
		TypeExperimenter:  func(b []byte) error { _, err := DecodeExperimenter(b); return err },
	}
	for _, m := range realMessages(t) {
		decode := decoders[m[1]]
		if decode == nil {
			continue
		}
		for n := range m {
			b := append([]byte{}, m[:n]...)
			if decode(b) == nil {
				t.Fatalf("%x is accepted", b)
			}
			if n >= HeaderLen { // and with a header that is right
				b[2], b[3] = byte(n>>8), byte(n)
				if decode(b) == nil {
					t.Fatalf("%x is accepted", b)
				}
			}
		}
	}
}

func TestMatchesThatFlowCannotSayAreErrors(t *testing.T) {
	for name, fields := range map[string]string{
		"an unknown field":               "80005802 0001",
		"an unknown class":               "12340204 00000001",
		"an experimenter's field":        "ffff0008 00002320 00000001",
		"a mask on in_port":              "80000108 00000001 ffffffff",
		"a mask on a MAC":                "8000070c 020000000001 ffffffffff00",
		"a field twice":                  "80000004 00000001 80000004 00000001",
		"the MAC that flow takes as any": "80000606 000000000000",
		"port 0":                         "80000004 00000000",
		"IP without its type":            "80001804 0a000001",
		"IP with the type of ARP":        "80000a02 0806 80001804 0a000001",
		"TCP ports with UDP":             "80000a02 0800 80001401 11 80001c02 0050",
		"ARP with the type of IP":        "80000a02 0800 80002a02 0001",
		"a mask that is no prefix":       "80000a02 0800 80001908 0a000001 ff00ff00",
		"a value outside its mask":       "80000a02 0800 80001908 0a000001 ffffff00",
		"an empty mask":                  "80000a02 0800 80001908 00000000 00000000",
		"a masked VLAN":                  "80000d04 1000 1000",
		"a VLAN without its bit":         "80000c02 0064",
		"IPv6":                           "80000a02 86dd 80001401 3a",
		"an unknown bit of ct_state":     "0001d308 80000000 80000000",
		"an odd length with a mask":      "80000107 00000001 ffffff",
		"a length of another field":      "80000002 0001",
	} {
		b := matchOf(fields)
		if m, err := DecodeMatch(b); err == nil {
			t.Errorf("%s: %x is decoded as %+v", name, b, m)
		}
	}
	for name, b := range map[string][]byte{
		"nothing":           nil,
		"the standard type": unhex("00000004 00000000"),
		"too short a match": unhex("00010003 00000000"),
		"no padding":        unhex("0001000a 80000a02 0800"),
		"a field too long":  unhex("0001000a 80000a03 080000000000"),
		"more than a match": unhex("00010004 00000000 00"),
	} {
		if _, err := DecodeMatch(b); err == nil {
			t.Errorf("%s: %x is decoded", name, b)
		}
	}
}

func TestActionsThatFlowCannotSayAreErrors(t *testing.T) {
	for name, actions := range map[string]string{
		"set_queue":                  "00150008 00000001",
		"dec_ttl":                    "00180008 00000000",
		"push_vlan of 0x88a8":        "00110008 88a80000",
		"output to port 0":           "00000010 00000000 0000 000000000000",
		"a masked set_field":         "00190018 80000d04 10051fff 000000000000000000000000",
		"set_field of in_port":       "00190010 80000004 00000001 00000000",
		"set vlan without the bit":   "00190010 80000c02 0005 000000000000",
		"set_field, field too long":  "00190010 80001820 00000001 00000000",
		"another experimenter":       "ffff0010 4f4e4600 0001 000000000000",
		"resubmit":                   "ffff0010 00002320 0001 0001 00000000",
		"ct_clear":                   "ffff0010 00002320 002b 000000000000",
		"move of half a field":       "ffff0018 00002320 0006 0010 0000 0000 00000406 00000206",
		"move from a register":       "ffff0018 00002320 0006 0020 0000 0000 00010004 00000e04",
		"load into a register":       "ffff0018 00002320 0007 001f 00010004 0000000000000001",
		"load of part of a field":    "ffff0018 00002320 0007 0003 00013a01 0000000000000001",
		"ct with force":              "ffff0018 00002320 0023 0003 00000000 0000 ff 000000 0000",
		"ct with a zone of a field":  "ffff0018 00002320 0023 0001 00010004 001f ff 000000 0000",
		"ct with a helper":           "ffff0018 00002320 0023 0001 00000000 0000 ff 000000 0015",
		"ct into table 0":            "ffff0018 00002320 0023 0001 00000000 0000 00 000000 0000",
		"ct with another action":     "ffff0020 00002320 0023 0001 00000000 0000 ff 000000 0000 00120008 00000000",
		"ct with a nat of IPv6":      "ffff0038 00002320 0023 0001 00000000 0000 ff 000000 0000 ffff0020 00002320 0024 0000 0001 0004 00000000000000000000000000000001",
		"ct with a random nat":       "ffff0028 00002320 0023 0001 00000000 0000 ff 000000 0000 ffff0010 00002320 0024 0000 0011 0000",
		"ct with bytes after nat":    "ffff0030 00002320 0023 0001 00000000 0000 ff 000000 0000 ffff0018 00002320 0024 0000 0001 0000 0000000000000001",
		"an action of 0 bytes":       "00120000 00000000",
		"an action of 12 bytes":      "0012000c 00000000 00000000",
		"an action beyond the list":  "00120010 00000000",
		"an action with too much":    "00120010 00000000 00000000 00000000",
		"half a header of an action": "0012",
	} {
		b := unhex(actions)
		if a, err := DecodeActions(b); err == nil {
			t.Errorf("%s: %x is decoded as %v", name, b, a)
		}
	}
	for name, b := range map[string][]byte{
		"write_actions":       unhex("00030010 00000000 00120008 00000000"),
		"write_metadata":      unhex("00020018 00000000 0000000000000001 ffffffffffffffff"),
		"a meter":             unhex("00060008 00000001"),
		"clear_actions":       unhex("00050008 00000000"),
		"apply twice":         unhex("00040010 00000000 00120008 00000000 00040010 00000000 00120008 00000000"),
		"apply after goto":    unhex("00010008 05000000 00040010 00000000 00120008 00000000"),
		"goto twice":          unhex("00010008 05000000 00010008 06000000"),
		"goto_table:0":        unhex("00010008 00000000"),
		"apply without any":   unhex("00040008 00000000"),
		"too long":            unhex("00010010 05000000"),
		"too short":           unhex("00010004"),
		"goto with too much":  unhex("00010010 05000000 00000000 00000000"),
		"half an instruction": unhex("0001"),
	} {
		if a, table, err := DecodeInstructions(b); err == nil {
			t.Errorf("%s: %x is decoded as %v, %d", name, b, a, table)
		}
	}
}

func TestRuleThatCannotBeSaidKeepsItsBytes(t *testing.T) {
	entry := func(idle byte, match, instructions []byte) []byte {
		n := 48 + len(match) + len(instructions)
		b := append([]byte{byte(n >> 8), byte(n), 3, 0}, make([]byte, 44)...)
		b[13], b[15] = 9, idle
		return append(append(b, match...), instructions...)
	}
	all, resubmit := matchOf(""), unhex("00040018 00000000 ffff0010 00002320 0001 0001 00000000")
	for name, b := range map[string][]byte{
		"a field":   entry(0, matchOf("80005802 0001"), nil),
		"an action": entry(0, all, resubmit),
		"a timeout": entry(1, all, nil),
		"no table":  entry(0, all, unhex("00010008 02000000")),
	} {
		both := append(append([]byte{}, b...), entry(0, all, nil)...)
		got, err := DecodeFlows(both)
		if err != nil || len(got) != 2 || got[0].DecodeErr == nil || got[1].DecodeErr != nil {
			t.Errorf("%s: %+v, %v", name, got, err)
			continue
		}
		if r := got[0].Rule; r.Table != 3 || r.Priority != 9 || r.Match != (flow.Match{}) || r.Actions != nil || r.Goto != 0 {
			t.Errorf("%s: rule %+v", name, r)
		}
		if len(got[0].MatchBytes)+len(got[0].InstructionBytes) != len(b)-48 {
			t.Errorf("%s: %x %x", name, got[0].MatchBytes, got[0].InstructionBytes)
		}
	}
}

func TestErrorsHaveTheNamesOfTheSpecification(t *testing.T) {
	for want, e := range map[string]Error{
		"OFPET_BAD_REQUEST/OFPBRC_IS_SLAVE":        {Type: ErrorBadRequest, Code: CodeIsSlave},
		"OFPET_BAD_ACTION/OFPBAC_BAD_OUT_GROUP":    {Type: 2, Code: 9},
		"OFPET_BAD_MATCH/OFPBMC_BAD_PREREQ":        {Type: 4, Code: 9},
		"OFPET_FLOW_MOD_FAILED/OFPFMFC_TABLE_FULL": {Type: 5, Code: 1},
		"OFPET_GROUP_MOD_FAILED/code 99":           {Type: 6, Code: 99},
		"OFPET_ROLE_REQUEST_FAILED/OFPRRFC_STALE":  {Type: ErrorRoleRequestFailed, Code: CodeStale},
		"type 77/code 1":                           {Type: 77, Code: 1},
		"OFPET_BUNDLE_FAILED/OFPBFC_MSG_FAILED":    {Type: ErrorExperimenter, Code: 2313, Experimenter: ExperimenterONF},
		"OFPET_EXPERIMENTER/0x00002320:5":          {Type: ErrorExperimenter, Code: 5, Experimenter: ExperimenterNicira},
	} {
		if got := e.Text(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func TestPacketInMayCarryAnyMetadata(t *testing.T) {
	fields := "80000004 00000007" + // in_port
		"0001d204 00000021 0001d402 0005 0001d604 00000001 0001d810 00000000000000000000000000000001" + // ct_state, zone, mark, label
		"00014204 00000005 0001de10 00000000000000000000000000000001" + // pkt_mark, xxreg0
		"00015002 0001 80004c08 0000000000000065 00013e04 0a000001" + // tun_metadata0, tun_id, tun_src
		"ffff5608 4f4e4600 00000001" + // an experimenter's field
		"80005804 00000000 7fff0201 01" // packet_type, an unknown class
	body := unhex("ffffffff 0005 01 1f 6b00000000000001")
	body = append(append(body, matchOf(fields)...), 0, 0)
	body = append(body, "frame"...)
	m := append([]byte{4, TypePacketIn, 0, byte(HeaderLen + len(body)), 0, 0, 0, 0}, body...)
	p, err := DecodePacketIn(m)
	if err != nil || p.InPort != 7 || p.Cookie != 0x6b00000000000001 || p.Table != 31 || p.Reason != 1 || p.TotalLen != 5 || string(p.Data) != "frame" {
		t.Errorf("%+v, %v", p, err)
	}
}
