package packets

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"kvnet/integration/harness"
	"kvnet/integration/lab"
	"kvnet/integration/ovs"
	"kvnet/integration/server"
	"kvnet/internal/tlstest"
)

// tlsWorld is a node with two bridges that connect to three servers over TLS, all
// on loopback of one namespace.
type tlsWorld struct {
	t                     *testing.T
	ctx                   context.Context
	node                  *lab.Node
	servers               []*server.Server
	controllers, switches *tlstest.CA
}

var tlsBridges = []string{lab.BrInt, lab.BrTun}

func newTLSWorld(t *testing.T) *tlsWorld {
	t.Helper()
	harness.NeedRoot(t)
	w := &tlsWorld{t: t, ctx: harness.Context(t, 4*time.Minute), controllers: tlstest.NewCA(t), switches: tlstest.NewCA(t)}
	l := harness.Lab(t)
	var err error
	if w.node, err = l.AddNode(w.ctx, "gw1"); err != nil {
		t.Fatal(err)
	}
	w.startServers(l.Dir)
	for _, b := range tlsBridges {
		if err := w.node.AddBridge(w.ctx, ovs.Bridge{Name: b, DPID: lab.BridgeDPID("gw1", b)}); err != nil {
			t.Fatal(err)
		}
		w.vsctl("set", "bridge", b, "fail_mode=secure", "other-config:disable-in-band=true")
	}
	return w
}

func (w *tlsWorld) startServers(dir string) {
	w.t.Helper()
	binary, err := server.Binary()
	if err != nil {
		w.t.Fatal(err)
	}
	files := tlstest.NewFiles(w.t, w.controllers.Issue("kvnet"), w.switches)
	for i := range 3 {
		host := fmt.Sprintf("127.0.0.%d", i+1)
		s, err := server.New(server.Config{
			Binary: binary, Dir: filepath.Join(dir, host), Name: fmt.Sprintf("s%d", i+1), NS: w.node.NS, Host: host,
			Args: []string{
				"--gossip-preset", "rack", "--bootstrap-expect", "3",
				"--join", "127.0.0.1:7946,127.0.0.2:7946,127.0.0.3:7946",
				"--openflow-listen", "-", "--openflow-tls-listen", host + ":6653",
				"--openflow-tls-cert", files.Cert, "--openflow-tls-key", files.Key, "--openflow-tls-ca", files.CA,
			},
		})
		if err != nil {
			w.t.Fatal(err)
		}
		w.servers = append(w.servers, s)
		if err := s.Launch(); err != nil {
			w.t.Fatal(err)
		}
		w.t.Cleanup(func() {
			if err := errors.Join(s.Stop(), s.CheckLog()); err != nil {
				w.t.Error(err)
			}
			if w.t.Failed() {
				w.t.Logf("end of the log of %s:\n%s", s.Name, s.LogTail())
			}
		})
	}
	for _, s := range w.servers {
		if err := s.WaitReady(w.ctx); err != nil {
			w.t.Fatal(err)
		}
	}
}

func (w *tlsWorld) vsctl(args ...string) {
	w.t.Helper()
	if err := w.node.Vsctl(w.ctx, args...); err != nil {
		w.t.Fatal(err)
	}
}

// connect gives the bridges this certificate and all servers as controllers. It
// ends the connections that they have.
func (w *tlsWorld) connect(shown tlstest.Pair) {
	w.t.Helper()
	f := tlstest.NewFiles(w.t, shown, w.controllers)
	for _, b := range tlsBridges {
		w.vsctl("del-controller", b)
	}
	w.vsctl("set-ssl", f.Key, f.Cert, f.CA)
	for _, b := range tlsBridges {
		w.vsctl("set-controller", b, "ssl:127.0.0.1:6653", "ssl:127.0.0.2:6653", "ssl:127.0.0.3:6653")
	}
}

// awaitMaster waits until each bridge is connected to all running servers over TLS, and
// returns the one that is MASTER.
func (w *tlsWorld) awaitMaster() (master *server.Server) {
	w.t.Helper()
	harness.Eventually(w.t, 40*time.Second, "one server is MASTER of all bridges, the others SLAVE", func() error {
		master = nil
		for _, s := range w.servers {
			if !s.Running() {
				continue
			}
			var answer struct {
				Switches []struct {
					ID, Role  string
					TLS       bool
					Connected bool
				}
			}
			if err := s.Read(w.ctx, "/kvnet/v1/switches", &answer); err != nil {
				return err
			}
			roles := map[string]int{}
			for _, sw := range answer.Switches {
				if sw.TLS && sw.Connected {
					roles[sw.Role]++
				}
			}
			switch {
			case roles["MASTER"] == len(tlsBridges) && master == nil:
				master = s
			case roles["SLAVE"] != len(tlsBridges):
				return fmt.Errorf("%s: %+v", s.Name, answer)
			}
		}
		if master == nil {
			return errors.New("there is no MASTER")
		}
		return nil
	})
	return master
}

// rules are the rules of all bridges, sorted.
func (w *tlsWorld) rules() []string {
	w.t.Helper()
	var out []string
	for _, b := range tlsBridges {
		text, err := w.node.Ofctl(w.ctx, nil, "dump-flows", b, "--no-stats")
		if err != nil {
			w.t.Fatal(err)
		}
		for line := range strings.Lines(text) {
			if line = strings.TrimSpace(line); strings.Contains(line, "actions=") {
				out = append(out, b+" "+line)
			}
		}
	}
	slices.Sort(out)
	return out
}

// refusals are the lines of a server's log about refused connections.
func (w *tlsWorld) refusals(s *server.Server) (out []string) {
	w.t.Helper()
	log, err := os.ReadFile(s.LogFile())
	if err != nil {
		w.t.Fatal(err)
	}
	for line := range strings.Lines(string(log)) {
		if strings.Contains(line, "over TLS refused") {
			out = append(out, line)
		}
	}
	return out
}

func TestSwitchesAreRuledOverTLS(t *testing.T) {
	w := newTLSWorld(t)
	// A stranger gets nothing.
	w.connect(tlstest.NewCA(t).Issue("stranger"))
	for _, s := range w.servers {
		harness.Eventually(t, 30*time.Second, s.Name+" refuses both bridges", func() error {
			n, _, err := s.Metric(w.ctx, "kvnet_openflow_tls_failures_total")
			if err == nil && n < 2 {
				err = fmt.Errorf("%v refusals", n)
			}
			return err
		})
		if said := w.refusals(s); len(said) != 1 || !strings.Contains(said[0], "unknown authority") || !strings.Contains(said[0], "CN=stranger") {
			t.Errorf("the log of %s says %q", s.Name, said)
		}
		if code, answer, err := s.Do(w.ctx, http.MethodGet, "/kvnet/v1/switches", nil); err != nil || code != http.StatusOK || string(answer) != `{"switches":[]}` {
			t.Errorf("%s knows %d %s, %v", s.Name, code, answer, err)
		}
	}

	// One of ours is connected to all and gets its rules from one.
	w.connect(w.switches.Issue("gw1"))
	master := w.awaitMaster()
	if err := master.Write(w.ctx, http.MethodPost, server.NodePath, map[string]any{"nodes": []map[string]any{{
		"hostname": "gw1", "type": "GATEWAY", "managementIp": "192.0.2.1", "dataIp": "192.0.2.1",
		"integrationBridge": lab.BridgeDPID("gw1", lab.BrInt).String(), "tunnelBridge": lab.BridgeDPID("gw1", lab.BrTun).String(),
	}}}); err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, soon, "the node is COMPLETE and has its rules", func() error {
		state, err := master.NodeState(w.ctx, "gw1")
		if n := len(w.rules()); err == nil && (state != "COMPLETE" || n < 4) {
			err = fmt.Errorf("%s, %d rules", state, n)
		}
		return err
	})
	before := w.rules()

	// The next one takes over and changes nothing.
	if err := master.Kill(); err != nil {
		t.Fatal(err)
	}
	if next := w.awaitMaster(); next == master {
		t.Error("a dead server is MASTER")
	}
	if after := w.rules(); !slices.Equal(before, after) {
		t.Errorf("before:\n%s\nafter:\n%s", strings.Join(before, "\n"), strings.Join(after, "\n"))
	}
}
