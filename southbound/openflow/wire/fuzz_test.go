package wire

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"os"
	"strings"
	"testing"

	"kvnet/southbound/flow"
)

// realMessages are messages that a real switch sent.
func realMessages(t testing.TB) [][]byte {
	t.Helper()
	text, err := os.ReadFile("testdata/messages.txt")
	if err != nil {
		t.Fatal(err)
	}
	var out [][]byte
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "#") {
			continue
		}
		b, err := hex.DecodeString(line)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, b)
	}
	return out
}

// ofType are the real messages of a type.
func ofType(t testing.TB, typ uint8) [][]byte {
	t.Helper()
	var out [][]byte
	for _, m := range realMessages(t) {
		if m[1] == typ {
			out = append(out, m)
		}
	}
	if len(out) == 0 {
		t.Fatalf("no message of type %d", typ)
	}
	return out
}

// bodies are the bodies of the real multipart replies of a type.
func bodies(t testing.TB, typ uint16) [][]byte {
	t.Helper()
	var out [][]byte
	for _, m := range ofType(t, TypeMultipartReply) {
		if m[8] == 0 && uint16(m[9]) == typ && len(m) > 16 {
			out = append(out, m[16:])
		}
	}
	if len(out) == 0 {
		t.Fatalf("no multipart reply of type %d", typ)
	}
	return out
}

// fuzz runs a decoder on seeds and what the fuzzer makes of them. A decoder
// returns, and what it returns doesn't share memory with the input.
func fuzz[T any](f *testing.F, seeds [][]byte, decode func([]byte) (T, error)) {
	for _, s := range seeds {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		b = bytes.Clone(b)
		v, err := decode(b)
		if err != nil {
			return
		}
		before := fmt.Sprintf("%+v", v)
		for i := range b {
			b[i] ^= 0xff
		}
		if after := fmt.Sprintf("%+v", v); after != before {
			t.Fatalf("what was decoded changes with the input:\n%s\n%s", before, after)
		}
	})
}

func FuzzHello(f *testing.F)        { fuzz(f, ofType(f, TypeHello), DecodeHello) }
func FuzzFeatures(f *testing.F)     { fuzz(f, ofType(f, TypeFeaturesReply), DecodeFeatures) }
func FuzzPacketIn(f *testing.F)     { fuzz(f, ofType(f, TypePacketIn), DecodePacketIn) }
func FuzzFlowRemoved(f *testing.F)  { fuzz(f, ofType(f, TypeFlowRemoved), DecodeFlowRemoved) }
func FuzzPortStatus(f *testing.F)   { fuzz(f, ofType(f, TypePortStatus), DecodePortStatus) }
func FuzzRoleReply(f *testing.F)    { fuzz(f, ofType(f, TypeRoleReply), DecodeRoleReply) }
func FuzzDescription(f *testing.F)  { fuzz(f, bodies(f, MultipartDesc), DecodeDesc) }
func FuzzPorts(f *testing.F)        { fuzz(f, bodies(f, MultipartPortDesc), DecodePorts) }
func FuzzGroupStats(f *testing.F)   { fuzz(f, bodies(f, MultipartGroupStats), DecodeGroupStats) }
func FuzzPortStats(f *testing.F)    { fuzz(f, bodies(f, MultipartPortStats), DecodePortStats) }
func FuzzTableStats(f *testing.F)   { fuzz(f, tableStatsSeeds, DecodeTableStats) }
func FuzzExperimenter(f *testing.F) { fuzz(f, ofType(f, TypeExperimenter), flatExperimenter) }

// tableStatsSeeds are some tables of the long list.
var tableStatsSeeds = [][]byte{append([]byte{1, 0, 0, 0, 0, 0, 0, 7}, make([]byte, 16)...), make([]byte, 48)}

// flatExperimenter has values instead of pointers, so that a change shows.
func flatExperimenter(b []byte) (string, error) {
	e, err := DecodeExperimenter(b)
	return fmt.Sprintf("%x %x %+v %+v", e.Experimenter, e.Type, e.Bundle, e.RoleStatus), err
}

func FuzzError(f *testing.F) {
	fuzz(f, ofType(f, TypeError), func(b []byte) (Error, error) {
		e, err := DecodeError(b)
		_ = e.Text()
		return e, err
	})
}

func FuzzMultipart(f *testing.F) {
	fuzz(f, ofType(f, TypeMultipartReply), func(b []byte) (string, error) {
		typ, more, body, err := DecodeMultipart(b)
		return fmt.Sprint(typ, more, len(body)), err
	})
}

// FuzzFlows also checks that a rule that is decoded is valid, and that its bytes
// are those of the input.
func FuzzFlows(f *testing.F) {
	fuzz(f, bodies(f, MultipartFlow), func(b []byte) ([]FlowEntry, error) {
		entries, err := DecodeFlows(b)
		for _, e := range entries {
			if err == nil && (!bytes.Contains(b, e.MatchBytes) || !bytes.Contains(b, e.InstructionBytes)) {
				panic(fmt.Sprintf("the bytes of %+v aren't those of the switch", e))
			}
			if err := e.Rule.Validate(); err != nil && e.DecodeErr == nil {
				panic(err)
			}
		}
		return entries, err
	})
}

func FuzzGroups(f *testing.F) {
	fuzz(f, bodies(f, MultipartGroupDesc), func(b []byte) ([]GroupEntry, error) {
		groups, err := DecodeGroups(b)
		for _, g := range groups {
			if err := g.Group.Validate(); err != nil && g.DecodeErr == nil {
				panic(err)
			}
		}
		return groups, err
	})
}

func FuzzMatch(f *testing.F) {
	var seeds [][]byte
	for _, b := range bodies(f, MultipartFlow) {
		entries, err := DecodeFlows(b)
		if err != nil {
			f.Fatal(err)
		}
		for _, e := range entries {
			seeds = append(seeds, e.MatchBytes)
		}
	}
	fuzz(f, seeds, func(b []byte) (flow.Match, error) {
		m, err := DecodeMatch(b)
		if err == nil {
			if err := m.Validate(); err != nil {
				panic(err)
			}
		}
		return m, err
	})
}

func FuzzInstructions(f *testing.F) {
	var seeds [][]byte
	for _, b := range bodies(f, MultipartFlow) {
		entries, err := DecodeFlows(b)
		if err != nil {
			f.Fatal(err)
		}
		for _, e := range entries {
			seeds = append(seeds, e.InstructionBytes)
		}
	}
	fuzz(f, seeds, func(b []byte) (string, error) {
		actions, table, err := DecodeInstructions(b)
		return fmt.Sprint(actions, table), err
	})
}

func FuzzBuckets(f *testing.F) {
	var seeds [][]byte
	for _, b := range bodies(f, MultipartGroupDesc) {
		seeds = append(seeds, b[8:])
	}
	fuzz(f, seeds, DecodeBuckets)
}

// FuzzReader cuts any stream into messages, whole ones only.
func FuzzReader(f *testing.F) {
	f.Add(bytes.Join(realMessages(f)[:8], nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		r := NewReader(bytes.NewReader(b))
		total := 0
		for {
			h, m, err := r.Next()
			if err != nil {
				return
			}
			if int(h.Length) != len(m) || !bytes.Equal(m, b[total:total+len(m)]) {
				t.Fatalf("message %+v is %x", h, m)
			}
			total += len(m)
		}
	})
}
