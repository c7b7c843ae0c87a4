package openflow

import (
	"bytes"
	"testing"

	"kvnet/southbound/flow"
)

// sameAsTheLibrary checks that e, of the rule r, and all messages made of it are
// what libOpenflow encodes.
func sameAsTheLibrary(t testing.TB, r flow.Rule, e EncodedRule) {
	t.Helper()
	want, err := libraryRule(r)
	if err != nil {
		t.Fatalf("%s: libOpenflow: %v", r, err)
	}
	if !bytes.Equal(e.Match, want.Match) || !bytes.Equal(e.Instructions, want.Instructions) {
		t.Fatalf("%s:\n got %x %x\nwant %x %x", r, e.Match, e.Instructions, want.Match, want.Instructions)
	}
	const cookie, mask = 0x6b01020304050607, 0xff00000000000000
	for name, m := range map[string][2]Message{
		"add":           {AddFlow(e, cookie), libraryAddFlow(e, cookie)},
		"delete strict": {DeleteStrict(e), libraryDeleteStrict(e)},
		"delete":        {DeleteFlows(r.Table, cookie, mask), libraryDeleteFlows(r.Table, cookie, mask)},
	} {
		if !bytes.Equal(m[0].bytes, m[1].bytes) {
			t.Fatalf("%s %s:\n got %x\nwant %x", name, r, m[0].bytes, m[1].bytes)
		}
		got := appendBundleAdd(nil, 7, 9, m[0])
		if want, err := libraryBundleAdd(7, 9, m[1]); err != nil || !bytes.Equal(got, want) {
			t.Fatalf("%s %s in a bundle: %v\n got %x\nwant %x", name, r, err, got, want)
		}
	}
}

// SameAsTheLibrary is for the tests outside of the package.
var SameAsTheLibrary = sameAsTheLibrary

func TestRulesAreEncodedAsByTheLibrary(t *testing.T) {
	for name, r := range examples {
		t.Run(name, func(t *testing.T) {
			e, err := EncodeRule(r)
			if err != nil {
				t.Fatal(err)
			}
			sameAsTheLibrary(t, r, e)
		})
	}
}

func TestMessagesOfAnEncoderKeepTheirBytes(t *testing.T) {
	x := &Encoder{}
	var got, want []Message
	for i := range 1000 {
		for _, r := range examples {
			e, err := x.Rule(r)
			if err != nil {
				t.Fatal(err)
			}
			got, want = append(got, x.AddFlow(e, uint64(i))), append(want, AddFlow(e, uint64(i)))
		}
	}
	for i := range got {
		if !bytes.Equal(got[i].bytes, want[i].bytes) {
			t.Fatalf("message %d was changed by a later one", i)
		}
	}
}

func TestEncodingMakesHardlyAnyGarbage(t *testing.T) {
	x := &Encoder{}
	r := examples["tunnel-set"]
	if n := testing.AllocsPerRun(1000, func() {
		e, err := x.Rule(r)
		if err != nil {
			t.Fatal(err)
		}
		x.AddFlow(e, 1)
	}); n >= 1 {
		t.Errorf("%v allocations for one rule", n)
	}
}
