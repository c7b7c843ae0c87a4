package arp

import (
	"bytes"
	"encoding/hex"
	"net/netip"
	"testing"

	"kvnet/model"
)

var (
	gateway = model.MAC{0xfe, 0, 0, 0, 0, 2}
	snat    = netip.MustParseAddr("172.16.0.100")
	peer    = netip.MustParseAddr("172.16.0.1")
)

// The bytes are those that the original sent (captured on the wire).
const (
	gratuitous = "ffffffffffff" + "fe0000000002" + "0806" + "0001080006040002" + "fe0000000002" + "ac100064" + "ffffffffffff" + "ac100064"
	request    = "ffffffffffff" + "fe0000000002" + "0806" + "0001080006040001" + "fe0000000002" + "ac100064" + "000000000000" + "ac100001" +
		"000000000000000000000000000000000000"
)

func TestFramesAreByteForByteTheOriginals(t *testing.T) {
	if got := hex.EncodeToString(GratuitousFrame(gateway, snat)); got != gratuitous {
		t.Errorf("gratuitous ARP\ngot  %s\nwant %s", got, gratuitous)
	}
	if got := hex.EncodeToString(RequestFrame(gateway, snat, peer)); got != request {
		t.Errorf("ARP request\ngot  %s\nwant %s", got, request)
	}
}

func TestParseReadsWhatIsBuilt(t *testing.T) {
	p, err := Parse(RequestFrame(gateway, snat, peer))
	if want := (Packet{Op: Request, SenderMAC: gateway, SenderIP: snat, TargetIP: peer}); err != nil || p != want {
		t.Errorf("got %+v, %v", p, err)
	}
	p, err = Parse(GratuitousFrame(gateway, snat))
	if err != nil || !p.Gratuitous() || p.Op != Reply {
		t.Errorf("got %+v, %v", p, err)
	}
}

func TestParseLooksBehindAVLANTag(t *testing.T) {
	b := GratuitousFrame(gateway, snat)
	tagged := append(append(append([]byte{}, b[:12]...), 0x81, 0, 0, 100), b[12:]...)
	if p, err := Parse(tagged); err != nil || p.SenderIP != snat || p.VLAN != 100 {
		t.Errorf("got %+v, %v", p, err)
	}
	if got := Tagged(b, 100); !bytes.Equal(got, tagged) {
		t.Errorf("tagged\ngot  %x\nwant %x", got, tagged)
	}
	if got := Tagged(b, 0); !bytes.Equal(got, b) {
		t.Errorf("without a tag\ngot  %x\nwant %x", got, b)
	}
}

func TestParseRefusesOtherFrames(t *testing.T) {
	good := GratuitousFrame(gateway, snat)
	for i := range good {
		if _, err := Parse(good[:i]); err == nil {
			t.Errorf("a frame cut to %d bytes is read", i)
		}
	}
	for name, at := range map[string]int{"Ethernet type": 12, "hardware type": 15, "protocol": 16, "hardware length": 18, "protocol length": 19} {
		b := append([]byte{}, good...)
		b[at] ^= 0xff
		if _, err := Parse(b); err == nil {
			t.Errorf("a frame with another %s is read", name)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(GratuitousFrame(gateway, snat))
	f.Add(RequestFrame(gateway, snat, peer))
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := Parse(b)
		if err != nil {
			return
		}
		again, err := Parse(frame(broadcast, p))
		if err != nil || again != p {
			t.Fatalf("%+v is built and read as %+v, %v", p, again, err)
		}
	})
}
