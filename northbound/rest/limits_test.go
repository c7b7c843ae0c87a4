package rest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"kvnet/model"
)

// TestHostileBodiesAreRefusedAndStoreNothing sends each of them to every call
// that reads a body.
func TestHostileBodiesAreRefusedAndStoreNothing(t *testing.T) {
	l := newLab(t)
	bodies := map[string]string{
		"nothing":              " ",
		"no JSON":              "networkId=1",
		"invalid UTF-8":        "{\"networkId\":\"\xff\xfe\",\"name\":\"\xc3\"}",
		"UTF-16":               "{\x00\"\x00}\x00",
		"a NUL byte":           "{\"name\":\"a\x00b\"}",
		"an escaped NUL":       `{"networkId":"a\u0000","name":"a\u0000","id":"a\u0000","macAddress":"\u0000","nodes":[{"hostname":"\u0000"}]}`,
		"half a surrogate":     `{"networkId":"\ud800","name":"\ud800","id":"\ud800","vmName":"\udc00","nodes":[{"hostname":"\ud800"}]}`,
		"deep arrays":          strings.Repeat("[", 100_000),
		"deep objects":         strings.Repeat(`{"a":`, 100_000),
		"deep in a field":      `{"nodes":` + strings.Repeat("[", 1000) + strings.Repeat("]", 1000) + `}`,
		"numbers of no field":  `{"mtu":1e400,"networkId":1e400,"nodes":1e400,"rules":[{"portRangeMax":1e400}]}`,
		"a list of a thousand": `{"nodes":[` + strings.Repeat(`{},`, 1000) + `{}],"rules":[` + strings.Repeat(`0,`, 1000) + `0],"members":[` + strings.Repeat(`0,`, 1000) + `0]}`,
	}
	type call struct{ method, path string }
	var calls []call
	for _, r := range l.server.table() {
		if r.input {
			path := r.path
			for _, p := range []string{":id", ":key", ":hostname"} {
				path = strings.ReplaceAll(path, p, "aa:bb:cc:dd:ee:ff")
			}
			calls = append(calls, call{r.method, path})
		}
	}
	if len(calls) < 14 {
		t.Fatalf("only %d calls read a body", len(calls))
	}
	before := l.db.Snapshot().Revision()
	for _, c := range calls {
		for what, body := range bodies {
			if r := l.call(c.method, c.path, body); r.status != 400 || !bytes.HasPrefix(r.body, []byte(`{"code":400,"message":"`)) {
				t.Errorf("%s %s with %s: %d %.200s", c.method, c.path, what, r.status, r.body)
			}
		}
	}
	for _, kind := range model.WantedKinds {
		if n := l.db.Snapshot().Len(kind); n != 0 {
			t.Errorf("%d objects of kind %s are stored", n, kind)
		}
	}
	if now := l.db.Snapshot().Revision(); now != before {
		t.Errorf("the store went from revision %d to %d", before, now)
	}
}

// TestFaultsNameFieldAndValue: the sentence of a refusal says what is wrong.
func TestFaultsNameFieldAndValue(t *testing.T) {
	l := newLab(t)
	network := func(field, value string) string {
		return strings.TrimSuffix(networkBody("n"), "}") + `,"` + field + `":` + value + "}" // the last one wins
	}
	lb := func(rule string) string {
		return `{"name":"l","vip":"10.0.0.1","networkId":"n","rules":[` + rule + `]}`
	}
	for _, c := range []struct {
		path, body string
		want       []string
	}{
		{networksPath, network("mtu", "99999999999"), []string{"mtu", "99999999999", "32 bits"}},
		{networksPath, network("gatewayIp", `"10.0.0.256"`), []string{"gatewayIp", "10.0.0.256"}},
		{networksPath, network("gatewayIp", `"fe80::1%eth0"`), []string{"gatewayIp", "fe80::1%eth0"}},
		{networksPath, network("cidr", `"10.0.0.0"`), []string{"cidr", "10.0.0.0"}},
		{networksPath, network("type", `"vxlan"`), []string{"type", "vxlan", "VXLAN"}},
		{networksPath, network("segmentId", `"5","type":"VLAN","segmentId":4095`), []string{"segmentId", "4095", "4094"}},
		{networksPath, network("segmentId", `0,"type":"GRE"`), []string{"segmentId", "16777215"}},
		{networksPath, network("hostRoutes", `[{"destination":"10.0.0.0/8"},{"destination":"10.1.0.0/33"}]`), []string{"hostRoutes[1].destination", "10.1.0.0/33"}},
		{networksPath, network("ipPool", `{"start":"10.0.0.1","end":"::1"}`), []string{"ipPool", "IPv4", "::1"}},
		{networksPath, network("dnses", `["8.8.8.8",null]`), []string{"dnses[1]", "Invalid IP address string: null"}},
		{networksPath, network("networkId", `""`), []string{"networkId", "cannot be null"}},
		{networkingPath + "/loadbalancer", lb(`{"protocol":"tcp","portRangeMin":0,"portRangeMax":80}`), []string{"rules[0].portRangeMin", "0", "1 to 65535"}},
		{networkingPath + "/loadbalancer", lb(`{"protocol":"UDP","portRangeMin":80,"portRangeMax":65536}`), []string{"rules[0].portRangeMax", "65536"}},
		{networkingPath + "/loadbalancer", lb(`{"protocol":"TCP","portRangeMin":81,"portRangeMax":80}`), []string{"rules[0]", "81", "80"}},
		{networkingPath + "/loadbalancer", lb(`{"protocol":"TCP","portRangeMin":81}`), []string{"rules[0].portRangeMax is required"}},
		{routersPath, `{"name":"r","mac":"00:00:00:00:00:00"}`, []string{"mac", "zero"}},
		{routersPath, `{"name":"r","mac":"fe:00:00:00:00:01","external":[{"ip":"10.0.0.1","network":"a"},{"ip":"10.0.0.2","network":"b"}]}`, []string{"external", "2"}},
		{routersPath, `{"name":"r","mac":"fe:00:00:00:00:01","external":{"ip":"10.0.0"}}`, []string{"external[0].network is required", "external[0].ip", "10.0.0"}},
		{routersPath, `{"name":"r","mac":"fe:00:00:00:00:01","external":"x"}`, []string{"external is a text"}},
		{routersPath, `{"name":"r","mac":"fe:00:00:00:00:01","peerRouter":{"ip":"nowhere"}}`, []string{"peerRouter.ip", "nowhere"}},
		{routersPath, `{"name":"r","mac":"fe:00:00:00:00:01","internal":[null]}`, []string{"internal[0] is null"}},
		{networkingPath + "/port", `{"vmName":"v","networkId":"n","macAddress":"fe:00:00:00:00:01","portNumber":"LOCAL"}`, []string{"portNumber", "LOCAL"}},
		{networkingPath + "/port", `{"vmName":"v","networkId":"n","macAddress":"fe:00:00:00:00:01","deviceId":"a b"}`, []string{"deviceId", "a b"}},
		{networkingPath + "/security-group", `{"id":"g","name":"g","rules":[{"id":"r","securityGroupId":"g","direction":"ingress","portRangeMax":70000}]}`, []string{"rules[0].portRangeMax", "70000"}},
		{nodesPath, `{"nodes":[{"hostname":"h","type":"WORKER","managementIp":"x"},{"type":"WORKER","managementIp":"10.0.0.1"}]}`, []string{"nodes[0].managementIp", "nodes[1].hostname is required"}},
	} {
		r := l.must(400, "POST", c.path, c.body)
		var e errorJSON
		if err := json.Unmarshal(r.body, &e); err != nil {
			t.Fatal(err)
		}
		for _, w := range c.want {
			if !strings.Contains(e.Message, w) {
				t.Errorf("POST %s %s: %q lacks %q", c.path, c.body, e.Message, w)
			}
		}
	}
}

func TestLongBodiesAre413(t *testing.T) {
	l := newLab(t, func(c *Config) { c.Limits.Body = 10_000 })
	long := networkBody("n") + strings.Repeat(" ", 10_000)
	l.must(413, "POST", networksPath, long)

	// Without an announced length.
	req, err := http.NewRequest("POST", "http://"+l.server.Addr().String()+networksPath, io.MultiReader(strings.NewReader(long)))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", adminAuth)
	resp, err := l.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != 413 {
		t.Errorf("chunked: %d, want 413", resp.StatusCode)
	}
	l.must(404, "GET", networksPath+"/n", "")
	if used := l.server.bodies.used.Load(); used != 0 {
		t.Errorf("%d bytes of the budget were not given back", used)
	}
}

func TestBudgetOfAllBodies(t *testing.T) {
	l := newLab(t, func(c *Config) { c.Limits.Bodies = 5000 })
	if r := l.must(503, "POST", networksPath, networkBody("n")+strings.Repeat(" ", 20_000)); r.header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	l.must(201, "POST", networksPath, networkBody("n"))
}

// TestBodiesAreChargedWhatTheyHold: the budget knows the size of the buffer, and
// nothing of those that came before it.
func TestBodiesAreChargedWhatTheyHold(t *testing.T) {
	const limit = 4 << 20
	for _, c := range []struct{ sent, announced, most int64 }{
		{limit, limit, limit + 1},
		{limit, -1, limit + 1},
		{3 << 20, 3 << 20, 3<<20 + 1},
		{3 << 20, -1, limit + 1},
		{freeBody - 1, -1, 0},
		{freeBody, freeBody, freeBody + 1},
		{5000, 100, 8192}, // no HTTP server lets that through
	} {
		b := budget{limit: 3 * limit}
		body, taken, err := b.read(strings.NewReader(strings.Repeat("x", int(c.sent))), c.announced, limit)
		if err != nil || int64(len(body)) != c.sent {
			t.Errorf("%+v: %d bytes, %v", c, len(body), err)
		}
		if taken > c.most || taken != b.used.Load() || taken > 0 && taken != int64(cap(body)) {
			t.Errorf("%+v: %d bytes are taken, %d counted, for a buffer of %d", c, taken, b.used.Load(), cap(body))
		}
		if b.give(taken); b.used.Load() != 0 {
			t.Errorf("%+v: %d bytes stay taken", c, b.used.Load())
		}
	}
}

// slow opens a connection and sends the start of a request with a body.
func (l *lab) slow(head string) net.Conn {
	l.t.Helper()
	c, err := net.Dial("tcp", l.server.Addr().String())
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { _ = c.Close() })
	if _, err := io.WriteString(c, head); err != nil {
		l.t.Fatal(err)
	}
	return c
}

// TestSlowClientsHoldNobodyUp: bodies that arrive slowly, and answers that are
// not taken, hold no place.
func TestSlowClientsHoldNobodyUp(t *testing.T) {
	l := newLab(t, func(c *Config) { c.Limits.Concurrent = 2 })
	l.must(201, "POST", networksPath, networkBody("n"))
	for range 10 {
		l.slow("POST " + networksPath + " HTTP/1.1\r\nHost: x\r\nAuthorization: " + adminAuth + "\r\nContent-Length: 500\r\n\r\n{\"netw")
	}
	// Answers that are too long for the buffers on the way, and nobody takes them.
	l.must(201, "POST", networksPath, strings.Replace(networkBody("big"), `"name":"big"`, `"name":"`+strings.Repeat("x", 1<<20)+`"`, 1))
	for range 4 {
		l.slow(strings.Repeat("GET "+networksPath+" HTTP/1.1\r\nHost: x\r\nAuthorization: "+adminAuth+"\r\n\r\n", 20))
	}
	for i := range 20 {
		l.must(200, "GET", networksPath+"/n", "")
		l.must(201, "POST", networksPath, networkBody(fmt.Sprint("m", i)))
	}
}

func TestHeaderMustArriveInTime(t *testing.T) {
	l := newLab(t, func(c *Config) { c.Limits.Header, c.Limits.Request = 50*time.Millisecond, 100*time.Millisecond })
	c := l.slow("GET " + networksPath + " HTTP/1.1\r\nHost: x\r\n")
	if err := c.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(c).ReadString('x'); !errors.Is(err, io.EOF) && !isReset(err) {
		t.Errorf("a header that never ends: %v, want the end of the connection", err)
	}
	c = l.slow("POST " + networksPath + " HTTP/1.1\r\nHost: x\r\nAuthorization: " + adminAuth + "\r\nContent-Length: 500\r\n\r\n{")
	if err := c.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != 400 {
		t.Errorf("a body that never ends: %d", resp.StatusCode)
	}
}

func isReset(err error) bool { return err != nil && strings.Contains(err.Error(), "reset") }

// TestPlacesAreLimited: with all places taken by writes that wait for the store,
// further writes are refused and reads go on.
func TestPlacesAreLimited(t *testing.T) {
	st := &faultyStore{block: make(chan struct{})}
	l := newLab(t, onFaulty(st), func(c *Config) { c.Limits.Concurrent, c.Limits.Wait = 3, 20*time.Millisecond })
	done := make(chan *reply, 3)
	for i := range 3 {
		go func() { done <- l.call("POST", networksPath, networkBody(fmt.Sprint(i))) }()
	}
	eventually(t, "all places of writes are taken", func() bool { return len(l.server.writers) == 3 })
	if r := l.call("DELETE", networksPath+"/x", ""); r.status != 503 || r.header.Get("Retry-After") == "" {
		t.Errorf("a write too many: %d %s", r.status, r.body)
	}
	l.must(200, "GET", networksPath, "")
	close(st.block)
	for range 3 {
		if r := <-done; r.status != 201 {
			t.Errorf("a write that had its place: %d %s", r.status, r.body)
		}
	}
	eventually(t, "the places are free again", func() bool { return len(l.server.writers) == 0 && len(l.server.readers) == 0 })
}

// TestHeadersAreLimited: beyond that the HTTP server itself answers, in plain text.
func TestHeadersAreLimited(t *testing.T) {
	l := newLab(t)
	get := "GET " + networksPath + " HTTP/1.1\r\nHost: x\r\nAuthorization: " + adminAuth + "\r\nX-Long: "
	for length, want := range map[int]int{60 << 10: 200, 80 << 10: 431} {
		c := l.slow(get + strings.Repeat("x", length) + "\r\n\r\n")
		if err := c.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
			t.Fatal(err)
		}
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatalf("a header of %d bytes: %v", length, err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("a header of %d bytes: %d, want %d", length, resp.StatusCode, want)
		}
	}
}
