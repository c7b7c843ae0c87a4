package main

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// ownCerts are the arguments for certificates of an authority of the user's. Here it
// is one that is made as for a gossip key, which the servers don't have.
func ownCerts(t *testing.T, fill byte) []string {
	t.Helper()
	f, err := peerTLSFromKey(t.TempDir(), bytes.Repeat([]byte{fill}, 32), "127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	return []string{"--store-peer-cert", f.cert, "--store-peer-key", f.key, "--store-peer-ca", f.ca}
}

func TestServersUseCertificatesOfTheUsers(t *testing.T) {
	servers := []*process{newProcess(t, "a"), newProcess(t, "b"), newProcess(t, "c")}
	args := []string{"--gossip-key-file", keyFile(t, 7), "--bootstrap-expect", "3"}
	for _, p := range servers {
		args = append(args, "--join", p.gossipListen)
	}
	own := map[*process][]string{}
	for _, p := range servers {
		own[p] = ownCerts(t, 8) // each its own certificate, of the same authority
		p.run(append(own[p], args...)...)
	}
	for _, p := range servers {
		p.ready()
	}
	leader := agreed(t, servers, 3, "")
	for _, p := range servers {
		p.write("net-" + p.name)
		p.sees("net-" + p.name)
		if _, err := os.Stat(filepath.Join(p.dataDir, "peer-tls")); err == nil {
			t.Errorf("%s has made certificates from the gossip key", p.name)
		}
	}

	// A member with certificates of another authority, such as the one of the gossip
	// key, is no part of the cluster; with the right ones it is one again.
	odd := without(servers, leader)[0]
	if err := odd.end(syscall.SIGTERM); err != nil {
		t.Errorf("%s ended with %v", odd.name, err)
	}
	leader.write("missed")
	odd.run(args...)
	eventually(t, "the odd one shows what it has, and is without a quorum", func() bool {
		code, _, body := odd.get("/onos/kubevirtnetworking/network")
		consistent, _, _ := odd.get("/onos/kubevirtnetworking/network?consistent=true")
		return code == http.StatusOK && !strings.Contains(body, "missed") && consistent == http.StatusServiceUnavailable
	})
	if err := odd.end(syscall.SIGTERM); err != nil {
		t.Errorf("%s ended with %v", odd.name, err)
	}
	odd.run(append(own[odd], args...)...)
	odd.ready()
	odd.sees("missed", "net-a", "net-b", "net-c")
}
