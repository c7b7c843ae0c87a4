package openflow_test

import (
	"testing"

	"kvnet/southbound/flow"
	"kvnet/southbound/openflow"
	"kvnet/southbound/openflow/oftest"
)

// someRules are rules as the pipeline has them for each VM.
func someRules(n int) []flow.Rule {
	out := make([]flow.Rule, n)
	for i := range out {
		out[i] = flow.Rule{Priority: uint16(i), Match: flow.Match{EthType: flow.EthTypeIPv4, TunID: flow.Uint64(uint64(i)), IPDst: flow.Host(addr("10.0.0.1"))},
			Actions: []flow.Action{
				flow.SetMAC{Field: flow.FieldEthDst, MAC: [6]byte{2}}, flow.SetIP{Field: flow.FieldTunDst, IP: addr("10.1.0.1")}, output(1),
			}}
	}
	return out
}

func BenchmarkEncodeRule(b *testing.B) {
	r := someRules(1)[0]
	b.ReportAllocs()
	for b.Loop() {
		if _, err := openflow.EncodeRule(r); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkBundle sends 10,000 rules to a simulated switch and reads them back.
func BenchmarkBundle(b *testing.B) {
	c := asMaster(start(b, nil))
	oftest.New(1, "p1").Connect(b, c.addr)
	s := c.master(b, 1)
	var msgs []openflow.Message
	for _, r := range someRules(10000) {
		msgs = append(msgs, openflow.AddFlow(encode(b, r), 1))
	}
	b.Run("write", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := s.Bundle(until(b), msgs); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("read", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if got, err := s.Flows(until(b), openflow.FlowQuery{Table: 0xff}); err != nil || len(got) != 10000 {
				b.Fatal(len(got), err)
			}
		}
	})
}
