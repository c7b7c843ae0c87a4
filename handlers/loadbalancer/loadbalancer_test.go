package loadbalancer_test

import "testing"

func TestAllRulesOfABalancer(t *testing.T) {
	l := newLab(t)
	l.Want("group, Lb-D, way in, ARP, Lb-U, Lb-T", "lb/lb1", lb1Rules(1))
	l.Put(floatingIP("f1", "r1", "172.16.0.150", "10.10.0.200"))
	l.Want("and with a floating IP", "lb/lb1", lb1Rules(1)+lbF(1, "172.16.0.150", "ac100096", "10.10.0.200"))
}
