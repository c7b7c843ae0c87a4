package rest

import (
	"strings"
	"testing"
)

// onosCalls are the 43 calls of ONOS's two apps.
const onosCalls = `
GET /network; GET /network/:id; GET /network/exist/:id; POST /network; PUT /network/:id; DELETE /network/:id
GET /router; GET /floating-ip; GET /security-group; GET /loadbalancer
GET M/status/vr/:name; PUT M/state/mer/:name
GET M/network; GET M/vr; GET M/fip; GET M/lb; GET M/instance
POST M/network; POST M/instance; POST M/vr; POST M/fip; POST M/lb
PUT M/network/:name; PUT M/instance/:name; PUT M/vr/:name; PUT M/fip/:name; PUT M/lb/:name
DELETE M/network/:name; DELETE M/instance/:name; DELETE M/vr/:name; DELETE M/fip/:name; DELETE M/lb/:name
POST N/node; PUT N/node; DELETE N/node/:hostname; GET N/node/state/:hostname; GET N/node/init/:hostname
GET N/node/init/all; GET N/node/init/incomplete; GET N/node/sync/rules; GET N/node/healthz
POST N/api-config; DELETE N/api-config/*endpoint
`

// TestEveryCallOfONOSIsThere: no call of the original is missing.
func TestEveryCallOfONOSIsThere(t *testing.T) {
	here := map[string]bool{}
	for _, r := range newBareServer(t, &faultyStore{}).table() {
		here[r.method+" "+r.path] = true
	}
	n := 0
	for call := range strings.SplitSeq(strings.ReplaceAll(strings.TrimSpace(onosCalls), "\n", ";"), ";") {
		method, path, _ := strings.Cut(strings.TrimSpace(call), " ")
		switch path[0] {
		case 'M':
			path = mm5Path + path[1:]
		case 'N':
			path = nodePath + path[1:]
		default:
			path = networkingPath + path
		}
		if n++; !here[method+" "+path] {
			t.Errorf("there is no %s %s", method, path)
		}
	}
	if n != 43 {
		t.Errorf("%d calls, want 43", n)
	}
}
