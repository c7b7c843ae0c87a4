package rest

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

func TestAddressesAndKeysThatAreNoneAreRefused(t *testing.T) {
	l := newLab(t)
	const kn = "/onos/kubevirtnetworking"
	router := func(mac, ext, peer string) string {
		return fmt.Sprintf(`{"name":"z","mac":"%s","external":{"ip":"%s","network":"x"},"peerRouter":{"ip":"172.16.0.1","mac":"%s"}}`, mac, ext, peer)
	}
	const good = "FA:00:00:00:00:0A"
	cases := []struct{ law, path, body, want string }{
		{"no router has the broadcast MAC", "/router", router("FF:FF:FF:FF:FF:FF", "172.16.0.9", good), "the broadcast address"},
		{"no peer has the broadcast MAC", "/router", router(good, "172.16.0.9", "ff:ff:ff:ff:ff:ff"), "the broadcast address"},
		{"no router has the unspecified address", "/router", router(good, "0.0.0.0", good), "the unspecified address"},
		{"no router has a group's address", "/router", router(good, "224.0.0.1", good), "the address of a group"},
		{"no router has the broadcast address", "/router", router(good, "255.255.255.255", good), "the broadcast address"},
		{"no VM has the unspecified address", "/port", `{"vmName":"v","networkId":"n","macAddress":"` + good + `","ipAddress":"0.0.0.0"}`, "the unspecified address"},
		{"no balancer has the unspecified address", "/loadbalancer", `{"name":"l","vip":"0.0.0.0","networkId":"n"}`, "the unspecified address"},
		{"a key has an end", "/router", `{"name":"` + strings.Repeat("x", maxKey+1) + `","mac":"` + good + `"}`, "name has 4097 bytes, of at most 4096"},
	}
	for _, c := range cases {
		t.Run(c.law, func(t *testing.T) {
			if r := l.call(http.MethodPost, kn+c.path, c.body); r.status != http.StatusBadRequest || !strings.Contains(string(r.body), c.want) {
				t.Errorf("%d %s, want 400 with %q", r.status, r.body, c.want)
			}
		})
	}
	if r := l.must(http.StatusOK, http.MethodGet, kn+"/router", ""); string(r.body) != `{"routers":[]}` {
		t.Errorf("something was stored: %s", r.body)
	}
	l.must(http.StatusCreated, http.MethodPost, kn+"/router", `{"name":"`+strings.Repeat("x", maxKey)+`","mac":"`+good+`"}`)
	l.must(http.StatusNoContent, http.MethodDelete, kn+"/router/"+strings.Repeat("x", maxKey), "")
}
