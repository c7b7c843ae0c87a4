package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// childEnv makes this test binary behave as kvnet.
const childEnv = "KVNET_TEST_IS_KVNET"

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		os.Exit(execute())
	}
	os.Exit(m.Run())
}

// process is a server in a process of its own.
type process struct {
	*config // its addresses

	t    *testing.T
	args []string
	cmd  *exec.Cmd
	log  *bytes.Buffer
	done chan struct{} // closed when it has ended, with
	exit *error
}

// newProcess chooses the addresses of a server. Its first start is run.
func newProcess(t *testing.T, name string) *process {
	t.Helper()
	c := &config{name: name, dataDir: filepath.Join(t.TempDir(), name)}
	for _, a := range []*string{&c.restListen, &c.openflowListen, &c.metricsListen, &c.storeListen, &c.gossipListen} {
		*a = freePort(t)
	}
	return &process{config: c, t: t}
}

// run starts the server. It is killed when the test ends.
func (p *process) run(args ...string) {
	p.t.Helper()
	p.args = args
	p.cmd = exec.Command(os.Args[0], append([]string{
		"server", "--name", p.name, "--data-dir", p.dataDir, "--rest-listen", p.restListen,
		"--openflow-listen", p.openflowListen, "--metrics-listen", p.metricsListen, "--store-listen", p.storeListen,
		"--gossip-listen", p.gossipListen, "--gossip-preset", "rack", "--manage-bridges=false",
	}, args...)...)
	p.cmd.Env = append(os.Environ(), childEnv+"=1")
	p.log = &bytes.Buffer{}
	p.cmd.Stderr = p.log
	if err := p.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	cmd, done, exit, log := p.cmd, make(chan struct{}), new(error), p.log
	p.done, p.exit = done, exit
	go func() {
		*exit = cmd.Wait()
		close(done)
	}()
	p.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		select {
		case <-done:
		case <-time.After(20 * time.Second):
			p.t.Errorf("server %s can't be killed", p.name)
		}
		if p.t.Failed() {
			p.t.Logf("log of %s:\n%s", p.name, log.String())
		}
	})
}

// end sends a signal and waits until the process is gone.
func (p *process) end(sig syscall.Signal) error {
	p.t.Helper()
	if err := p.cmd.Process.Signal(sig); err != nil {
		p.t.Fatal(err)
	}
	select {
	case <-p.done:
		return *p.exit
	case <-time.After(20 * time.Second):
		p.t.Fatalf("server %s does not end", p.name)
		return nil
	}
}

// get asks the server; it returns status 0 if it doesn't answer.
func (p *process) get(path string) (int, http.Header, string) {
	p.t.Helper()
	req, err := http.NewRequestWithContext(p.t.Context(), http.MethodGet, "http://"+p.restListen+path, nil)
	if err != nil {
		p.t.Fatal(err)
	}
	req.SetBasicAuth("onos", "rocks")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil, err.Error()
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, nil, err.Error()
	}
	return resp.StatusCode, resp.Header, string(b)
}

func (p *process) ready() {
	p.t.Helper()
	eventually(p.t, p.name+" is ready", func() bool {
		code, _, _ := p.get("/readyz")
		return code == http.StatusOK
	})
}

type listed struct {
	Name, State   string
	Leader, Voter bool
	Term          uint32
}

func (p *process) members() []listed {
	p.t.Helper()
	var v struct{ Members []listed }
	_, _, body := p.get("/kvnet/v1/members")
	if json.Unmarshal([]byte(body), &v) != nil {
		return nil
	}
	return v.Members
}

// leader names the leader, as this server sees it, if all those votes are there.
func (p *process) leader(voters int) (name string, term uint32) {
	p.t.Helper()
	n, leaders := 0, 0
	for _, m := range p.members() {
		if m.Voter {
			n++
		}
		if m.Leader {
			name, term = m.Name, m.Term
			leaders++
		}
	}
	if n != voters || leaders != 1 {
		return "", 0
	}
	return name, term
}

// agreed waits until all servers name the same leader, which is not other, and
// returns it.
func agreed(t *testing.T, servers []*process, voters int, other string) *process {
	t.Helper()
	var leader string
	eventually(t, "one leader for all", func() bool {
		var terms []uint32
		leader, _ = servers[0].leader(voters)
		for _, p := range servers {
			name, term := p.leader(voters)
			if name == "" || name == other || name != leader {
				return false
			}
			terms = append(terms, term)
		}
		return terms[0] == terms[len(terms)-1]
	})
	for _, p := range servers {
		if p.name == leader {
			return p
		}
	}
	t.Fatalf("%q leads, which isn't one of those that live", leader)
	return nil
}

func without(servers []*process, p *process) []*process {
	var out []*process
	for _, s := range servers {
		if s != p {
			out = append(out, s)
		}
	}
	return out
}

// write makes a network. On a busy machine the store may lose its leader at any
// time: what ends with 503 may have been done or not, and is tried again.
func (p *process) write(id string) {
	p.t.Helper()
	var code, before int
	var body string
	eventually(p.t, "a write on "+p.name+" is answered", func() bool {
		before = code
		code, body = p.post(p.t.Context(), id)
		return code != http.StatusServiceUnavailable
	})
	if code != http.StatusCreated && (code != http.StatusConflict || before != http.StatusServiceUnavailable) {
		p.t.Fatalf("write %s on %s: %d %s", id, p.name, code, body)
	}
}

// sees checks that a consistent read on the server shows all networks.
func (p *process) sees(ids ...string) {
	p.t.Helper()
	var code int
	var header http.Header
	var body string
	eventually(p.t, "a consistent read on "+p.name+" is answered", func() bool {
		code, header, body = p.get("/onos/kubevirtnetworking/network?consistent=true")
		return code != http.StatusServiceUnavailable
	})
	if code != http.StatusOK || header.Get("X-Kvnet-Revision") == "" {
		p.t.Fatalf("read on %s: %d %s", p.name, code, body)
	}
	for _, id := range ids {
		if !strings.Contains(body, fmt.Sprintf(`"networkId":%q`, id)) {
			p.t.Errorf("%s does not show %s: %s", p.name, id, body)
		}
	}
}

func keyFile(t *testing.T, fill byte) string {
	t.Helper()
	f := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(f, []byte(base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{fill}, 32))+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return f
}

// three starts three servers that found a cluster, and waits for them.
func three(t *testing.T) ([]*process, []string) {
	t.Helper()
	servers := []*process{newProcess(t, "a"), newProcess(t, "b"), newProcess(t, "c")}
	args := []string{"--gossip-key-file", keyFile(t, 7), "--bootstrap-expect", "3"}
	for _, p := range servers {
		args = append(args, "--join", p.gossipListen)
	}
	servers[0].run(args...)
	eventually(t, "a says what it waits for", func() bool {
		code, _, body := servers[0].get("/readyz")
		return code == http.StatusServiceUnavailable && strings.Contains(body, "waiting for 2 more servers")
	})
	if code, _, _ := servers[0].get("/livez"); code != http.StatusOK {
		t.Errorf("/livez is %d before there is a cluster", code)
	}
	if code, _, body := servers[0].get("/onos/kubevirtnetworking/network"); code != http.StatusServiceUnavailable {
		t.Errorf("networks before there is a cluster: %d %s", code, body)
	}
	for _, p := range servers[1:] {
		p.run(args...)
	}
	for _, p := range servers {
		p.ready()
	}
	return servers, args
}

// passOn has all servers write, kills the leader, starts it again and stops the next
// one. It returns that one, the leader of the rest, and what was written.
func passOn(t *testing.T, servers []*process, args []string, leader *process) (stopped, last *process, ids []string) {
	t.Helper()
	for _, p := range servers {
		ids = append(ids, "net-"+p.name)
		p.write("net-" + p.name)
		for _, q := range servers {
			q.sees(ids...)
		}
	}

	if err := leader.end(syscall.SIGKILL); err == nil {
		t.Error("a killed server ended well")
	}
	left := without(servers, leader)
	next := agreed(t, left, 3, leader.name)
	for _, p := range left {
		ids = append(ids, "after-kill-"+p.name)
		p.write("after-kill-" + p.name)
		p.sees(ids...)
	}
	// A server that comes back takes nothing away.
	leader.run(args...)
	leader.ready()
	leader.sees(ids...)
	if now := agreed(t, servers, 3, ""); now != next {
		t.Errorf("%s leads, after %s had it", now.name, next.name)
	}

	if err := next.end(syscall.SIGTERM); err != nil {
		t.Errorf("the server that was told to stop ended with %v", err)
	}
	if !strings.Contains(next.log.String(), "another server leads from now on") {
		t.Error("the lead was not handed over")
	}
	last = agreed(t, without(servers, next), 3, next.name)
	last.sees(ids...)
	return next, last, ids
}

func TestThreeServersAreOne(t *testing.T) {
	servers, args := three(t)
	leader := agreed(t, servers, 3, "")
	// What only the leader knows or can do the others leave to it.
	for _, p := range servers {
		for what, ask := range map[string]func() (int, string){
			"flows": func() (int, string) {
				code, _, text := p.get("/kvnet/v1/flows")
				return code, text
			},
			"adoption": func() (int, string) {
				return call(t, p.config, http.MethodPost, "/kvnet/v1/adopt", `{"cookie":"0x00b5000000000000/0xffff000000000000","dryRun":true}`)
			},
		} {
			if p == leader {
				if code, text := ask(); code != http.StatusOK {
					t.Errorf("%s by the leader: %d %s", what, code, text)
				}
				continue
			}
			eventually(t, p.name+" names the leader for "+what, func() bool {
				code, text := ask()
				if code != http.StatusServiceUnavailable {
					t.Errorf("%s by %s: %d %s", what, p.name, code, text)
				}
				return code != http.StatusServiceUnavailable || strings.Contains(text, leader.restListen)
			})
		}
	}

	stopped, last, ids := passOn(t, servers, args, leader)

	// Without a quorum there are no consistent reads and no writes, but reads.
	other := without(without(servers, stopped), last)[0]
	_ = last.end(syscall.SIGKILL)
	if code, _, body := other.get("/onos/kubevirtnetworking/network?consistent=true"); code != http.StatusServiceUnavailable {
		t.Errorf("consistent read without a quorum: %d %s", code, body)
	}
	if code, _, body := other.get("/onos/kubevirtnetworking/network"); code != http.StatusOK || !strings.Contains(body, ids[0]) {
		t.Errorf("read without a quorum: %d %s", code, body)
	}
	eventually(t, "the missing ones are named", func() bool {
		code, _, body := other.get("/readyz")
		return code == http.StatusServiceUnavailable && strings.Contains(body, "the majority of the cluster is missing: ") &&
			strings.Contains(body, stopped.name+" (left)") && strings.Contains(body, last.name+" (failed)")
	})
	eventually(t, "nobody is said to lead", func() bool {
		code, _, body := other.get("/kvnet/v1/flows")
		return code == http.StatusServiceUnavailable && strings.Contains(body, "this server knows of no leader")
	})
	if code, body := call(t, other.config, http.MethodPost, "/kvnet/v1/cluster/backup", ""); code != http.StatusServiceUnavailable ||
		!strings.Contains(body, "there is no backup; the majority") || strings.Contains(body, "write") {
		t.Errorf("backup without a quorum: %d %s", code, body)
	}
}

func TestOneServerGrowsToThree(t *testing.T) {
	a, b, c := newProcess(t, "a"), newProcess(t, "b"), newProcess(t, "c")
	a.run()
	a.ready()
	a.write("net-1")
	b.run("--join", a.gossipListen)
	c.run("--join", a.gossipListen)
	for _, p := range []*process{b, c} {
		p.ready()
		p.sees("net-1")
	}
	servers := []*process{a, b, c}
	if l := agreed(t, servers, 3, ""); l != a {
		t.Errorf("%s leads, not the server that was alone", l.name)
	}
	_ = a.end(syscall.SIGKILL)
	l := agreed(t, []*process{b, c}, 3, "a")
	l.write("net-2")

	// A server that has lost its data is replaced under its name.
	if err := os.RemoveAll(a.dataDir); err != nil {
		t.Fatal(err)
	}
	a.run("--join", b.gossipListen, "--join", c.gossipListen)
	a.ready()
	a.sees("net-1", "net-2")
	if now := agreed(t, servers, 3, ""); now != l {
		t.Errorf("%s leads, not %s", now.name, l.name)
	}
}

func TestAServerThatOnlyJoinsFoundsNothing(t *testing.T) {
	servers, _ := three(t)
	agreed(t, servers, 3, "")
	lonely, stranger := newProcess(t, "d"), newProcess(t, "e")
	lonely.run("--join", freePort(t))
	stranger.run("--join", servers[0].gossipListen, "--gossip-key-file", keyFile(t, 8))
	for _, p := range []*process{lonely, stranger} {
		eventually(t, p.name+" waits", func() bool {
			code, _, body := p.get("/readyz")
			return code == http.StatusServiceUnavailable && strings.Contains(body, "waiting for a cluster that it can join")
		})
	}
	eventually(t, "the stranger knows why", func() bool {
		_, _, body := stranger.get("/readyz")
		return strings.Contains(body, "its gossip key and this server's differ")
	})
	eventually(t, "the stranger is refused", func() bool {
		_, _, body := (&process{t: t, config: &config{restListen: servers[0].metricsListen}}).get("/metrics")
		return strings.Contains(body, `kvnet_gossip_refused_total{reason="key"}`) && !strings.Contains(body, `kvnet_gossip_refused_total{reason="key"} 0`)
	})
	for _, p := range []*process{lonely, stranger} {
		if _, err := os.Stat(filepath.Join(p.dataDir, "etcd")); err == nil {
			t.Errorf("%s has founded a store", p.name)
		}
	}
	if n := len(servers[0].members()); n != 3 {
		t.Errorf("%d members", n)
	}
}

// kvnet runs a command of the client.
func kvnet(t *testing.T, args ...string) (string, error) {
	t.Helper()
	cmd := root()
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(t.Context())
	return out.String(), err
}

func TestABackupBecomesAClusterAndAMemberIsRemoved(t *testing.T) {
	t.Setenv("KVNET_PASSWORD", "rocks")
	a, b := newProcess(t, "a"), newProcess(t, "b")
	a.run()
	a.ready()
	b.run("--join", a.gossipListen)
	b.ready()
	agreed(t, []*process{a, b}, 2, "")
	a.write("net-1")

	file := filepath.Join(t.TempDir(), "backup")
	at := []string{"--url", "http://" + b.restListen}
	if out, err := kvnet(t, append([]string{"cluster", "backup", file}, at...)...); err != nil {
		t.Fatal(out, err)
	}
	if _, err := kvnet(t, append([]string{"cluster", "backup", file}, at...)...); err == nil {
		t.Error("a file was overwritten")
	}
	saved, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if out, err := kvnet(t, "cluster", "backup", "-", at[0], at[1]+"/"); err != nil || len(out) < len(saved)/2 {
		t.Errorf("to the standard output: %d bytes, %v; to a file: %d", len(out), err, len(saved))
	}
	t.Setenv("KVNET_PASSWORD", "")
	if _, err := kvnet(t, append([]string{"cluster", "members"}, at...)...); err == nil || !strings.Contains(err.Error(), "KVNET_PASSWORD") {
		t.Errorf("without a password: %v", err)
	}
	t.Setenv("KVNET_PASSWORD", "rocks")
	out, err := kvnet(t, append([]string{"cluster", "members"}, at...)...)
	if err != nil || !strings.Contains(out, "leader") || !strings.Contains(out, "follower") {
		t.Errorf("members: %v\n%s", err, out)
	}
	for name, want := range map[string]string{"b": "409", "nobody": "404"} {
		if _, err := kvnet(t, append([]string{"cluster", "remove", name}, at...)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("remove %s: %v", name, err)
		}
	}
	if out, err := kvnet(t, "cluster", "remove", "b", "--url", "http://"+a.restListen); err != nil {
		t.Fatal(out, err)
	}
	select {
	case <-b.done:
		if log := b.log.String(); !strings.Contains(log, "was removed from the cluster") || strings.Contains(log, "must be started again") {
			t.Errorf("b ended without saying why, or says that it has to be started again")
		}
	case <-time.After(20 * time.Second):
		t.Error("a removed server goes on")
	}
	eventually(t, "one member is left", func() bool { return len(a.members()) == 1 })
	a.write("net-2")
	if err := a.end(syscall.SIGTERM); err != nil {
		t.Error(err)
	}

	c := newProcess(t, "c")
	if out, err := kvnet(t, "cluster", "restore", file, "--data-dir", c.dataDir, "--name", "c"); err != nil {
		t.Fatal(out, err)
	}
	c.run()
	c.ready()
	c.sees("net-1")
	if _, err := kvnet(t, "cluster", "recover", "--data-dir", a.dataDir); err == nil {
		t.Error("recovered without --force-new")
	}
	if out, err := kvnet(t, "cluster", "recover", "--force-new", "--data-dir", a.dataDir); err != nil {
		t.Fatal(out, err)
	}
	a.run()
	a.ready()
	a.sees("net-1", "net-2")
}
