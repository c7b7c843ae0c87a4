package reconcile

import (
	"net/netip"
	"reflect"
	"testing"
	"unsafe"

	"kvnet/model"
	"kvnet/southbound/flow"
)

// fullMatch has a value in every field.
func fullMatch() flow.Match {
	return flow.Match{
		InPort: flow.Port{Name: "p", Number: 1}, EthSrc: model.MAC{1}, EthDst: model.MAC{2}, EthType: 3, VLAN: flow.VLANID(4), IPProto: 5,
		IPSrc: netip.MustParsePrefix("10.0.0.6/32"), IPDst: netip.MustParsePrefix("10.0.7.1/24"),
		TPSrc: flow.PortMask{Value: 8, Mask: 9}, TPDst: flow.ExactPort(10), ICMPType: flow.Uint8(11), ICMPCode: flow.Uint8(0), ARPOp: 12,
		ARPSPA: netip.MustParsePrefix("13.0.0.0/8"), ARPTPA: netip.MustParsePrefix("0.0.0.0/0"), TunID: flow.Uint64(0),
		CTState: flow.Masked32{Value: 14, Mask: 15}, Metadata: flow.Masked64{Value: 16, Mask: 17},
	}
}

func TestKeyKeepsAllOfAMatch(t *testing.T) {
	full := fullMatch()
	for i := range reflect.TypeOf(full).NumField() {
		field := reflect.TypeOf(full).Field(i).Name
		if reflect.ValueOf(full).Field(i).IsZero() {
			t.Errorf("%s is not tried", field)
		}
		// Without this field it is another key, and comes back so.
		m := full
		reflect.ValueOf(&m).Elem().Field(i).SetZero()
		k := packKey(1, 2, &m)
		if got := k.match(); got != m {
			t.Errorf("without %s: packed %+v, unpacked %+v", field, m, got)
		}
		if k == packKey(1, 2, &full) {
			t.Errorf("%s makes no difference", field)
		}
	}
	k := packKey(1, 2, &full)
	if got := k.match(); got != full || k.table != 1 || k.priority != 2 {
		t.Errorf("packed %+v, unpacked %+v", full, got)
	}
	if k == packKey(2, 2, &full) || k == packKey(1, 3, &full) {
		t.Error("table or priority make no difference")
	}
}

func TestKeyOfABadPrefixStaysBad(t *testing.T) {
	for _, p := range []netip.Prefix{
		netip.PrefixFrom(netip.MustParseAddr("10.0.0.1"), 33), netip.MustParsePrefix("fe80::/64"), netip.MustParsePrefix("::ffff:10.0.0.1/128"),
	} {
		m := flow.Match{EthType: flow.EthTypeIPv4, IPSrc: p}
		if m.Validate() == nil {
			t.Fatalf("%v is not bad", p)
		}
		k := packKey(1, 2, &m)
		if k.match().Validate() == nil {
			t.Errorf("%v became %v", p, k.match().IPSrc)
		}
	}
}

// There is a cell for each rule: what is added here is added some 100,000 times.
func TestCellsAreSmall(t *testing.T) {
	if n := unsafe.Sizeof(cell{}); n > 224 {
		t.Errorf("a cell has %d bytes", n)
	}
}
