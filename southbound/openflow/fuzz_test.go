package openflow

import (
	"bytes"
	"encoding/hex"
	"errors"
	"net"
	"os"
	"reflect"
	"strings"
	"testing"

	"kvnet/model"
	"kvnet/model/state"
	"kvnet/southbound/flow"
	"kvnet/southbound/openflow/wire"
)

// fromSwitch are messages that a real switch sent.
func fromSwitch(t testing.TB) [][]byte {
	t.Helper()
	text, err := os.ReadFile("wire/testdata/messages.txt")
	if err != nil {
		t.Fatal(err)
	}
	var out [][]byte
	for line := range strings.Lines(string(text)) {
		if b, err := hex.DecodeString(strings.TrimSpace(line)); err == nil {
			out = append(out, b)
		}
	}
	return out
}

// FuzzRule takes a rule from its bytes: what can be decoded can be encoded, and is
// the same rule then, and the bytes are those of libOpenflow.
func FuzzRule(f *testing.F) {
	for _, r := range examples {
		e, err := EncodeRule(r)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(e.Match, e.Instructions)
	}
	f.Fuzz(func(t *testing.T, match, instructions []byte) {
		m, err := wire.DecodeMatch(match)
		if err != nil {
			return
		}
		r := flow.Rule{Match: m}
		if r.Actions, r.Goto, err = wire.DecodeInstructions(instructions); err != nil || r.Validate() != nil {
			return
		}
		e, err := EncodeRule(r)
		if errors.Is(err, ErrTooLarge) {
			return
		}
		if err != nil {
			t.Fatalf("%s was decoded, but: %v", r, err)
		}
		sameAsTheLibrary(t, r, e)
		again := flow.Rule{}
		if again.Match, err = wire.DecodeMatch(e.Match); err != nil {
			t.Fatal(err)
		}
		if again.Actions, again.Goto, err = wire.DecodeInstructions(e.Instructions); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(again, r) {
			t.Fatalf("encoded %v\ndecoded %v", r, again)
		}
	})
}

// FuzzSession lets a switch say anything at any stage: the session goes on or
// ends with an error.
func FuzzSession(f *testing.F) {
	messages := fromSwitch(f)
	f.Add(uint8(stageHello), bytes.Join(messages[:4], nil))
	for i := range len(messages) / 10 {
		f.Add(uint8(stageRunning), bytes.Join(messages[10*i:10*i+10], nil))
	}
	f.Add(uint8(stagePorts), messages[len(messages)-1])
	f.Fuzz(func(t *testing.T, at uint8, b []byte) {
		conn, other := net.Pipe()
		defer conn.Close()
		defer other.Close()
		srv := NewServer(Config{Observer: state.New(), Events: make(masters, 1)})
		srv.SetRole(Role{Master: true, Generation: 1})
		s := newSession(srv, conn)
		s.stage = stage(at % uint8(stageRunning+1))
		if s.stage > stageFeatures {
			s.dpid = 1
		}
		s.roles.portsKnown = s.stage == stageRunning
		s.roles.role, s.roles.generation, s.roles.wanted, s.roles.xid = model.RoleMaster, 1, Role{true, 1}, 5
		s.calls.xid = 5
		bundle := s.calls.newBundle(3)
		s.calls.start(&call{typ: wire.TypeMultipartReply, multipart: wire.MultipartFlow, done: make(chan struct{})})
		s.close(errors.New("nobody writes")) // so that the reader doesn't wait for the writer
		r := wire.NewReader(bytes.NewReader(b))
		r.Check = s.check
		for {
			h, msg, err := r.Next()
			if err != nil || s.handle(h, msg) != nil {
				break
			}
			select { // nobody takes the master's announcement
			case <-srv.cfg.Events.(masters):
			default:
			}
		}
		_ = s.calls.bundleErr(bundle)
	})
}
