package rest

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"kvnet/model"
)

const eventsPath = "/kvnet/v1/events"

// sse is one server-sent event as a client sees it. last is the id that the client
// would resume with.
type sse struct {
	name, data string
	last       string
}

func (e sse) id(t *testing.T) int64 {
	t.Helper()
	n, err := strconv.ParseInt(e.last, 10, 64)
	if err != nil {
		t.Fatalf("event %s has the id %q", e.name, e.last)
	}
	return n
}

func (e sse) content(t *testing.T) (v struct {
	Kind, Key string
	Old, New  map[string]any
}) {
	t.Helper()
	if err := json.Unmarshal([]byte(e.data), &v); err != nil {
		t.Fatalf("event %s: %s: %v", e.name, e.data, err)
	}
	return v
}

// eventReader is an open stream of events.
type eventReader struct {
	t      *testing.T
	body   io.ReadCloser
	lines  *bufio.Reader
	last   string
	pulses int // comments
}

// listen opens a stream with more of a query and headers, and waits until the
// server has placed it.
func (l *lab) listen(query string, headers ...string) *eventReader {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	l.t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+l.server.Addr().String()+eventsPath+query, nil)
	if err != nil {
		l.t.Fatal(err)
	}
	req.Header.Set("Authorization", viewerAuth)
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := l.client.Do(req)
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { _ = resp.Body.Close() })
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != streamType {
		l.t.Fatalf("status %d, %s", resp.StatusCode, resp.Header.Get("Content-Type"))
	}
	r := &eventReader{t: l.t.(*testing.T), body: resp.Body, lines: bufio.NewReader(resp.Body)}
	return r
}

// block reads up to an empty line; one without data is no event but may have an id.
func (r *eventReader) block() (e sse, err error) {
	for {
		line, err := r.lines.ReadString('\n')
		if err != nil {
			return e, err
		}
		line = strings.TrimSuffix(line, "\n")
		field, value, _ := strings.Cut(line, ": ")
		switch {
		case line == "":
			e.last = r.last
			return e, nil
		case field == "":
			r.pulses++
		case field == "event":
			e.name = value
		case field == "data":
			e.data += value
		case field == "id":
			r.last = value
		default:
			r.t.Errorf("line %q", line)
		}
	}
}

// placed reads up to the first id, after which the stream misses nothing.
func (r *eventReader) placed() *eventReader {
	r.t.Helper()
	if e, err := r.block(); err != nil || e.data != "" || r.last == "" {
		r.t.Fatalf("the stream begins with %+v, error %v", e, err)
	}
	return r
}

func (r *eventReader) next() sse {
	r.t.Helper()
	for {
		e, err := r.block()
		if err != nil {
			r.t.Fatalf("read events: %v", err)
		}
		if e.data != "" {
			return e
		}
	}
}

// until reads events up to one of that name.
func (r *eventReader) until(name string) (out []sse) {
	r.t.Helper()
	for {
		e := r.next()
		out = append(out, e)
		if e.name == name {
			return out
		}
	}
}

func namesOf(list []sse) (out []string) {
	for _, e := range list {
		out = append(out, e.name)
	}
	return out
}

func routerBody(name, more string) string {
	return `{"name":"` + name + `","enableSnat":true,"mac":"fe:00:00:00:00:0a"` + more + `}`
}

func TestEventsTellWhatChangedInONOSsWords(t *testing.T) {
	l := newLab(t)
	r := l.listen("").placed()
	l.must(201, "POST", routersPath, routerBody("r1", ""))
	e := r.next()
	v := e.content(t)
	if e.name != "KUBEVIRT_ROUTER_CREATED" || v.Kind != "router" || v.Key != "r1" || v.Old != nil || v.New["mac"] != "FE:00:00:00:00:0A" {
		t.Errorf("created: %+v", e)
	}
	if want := l.db.Snapshot().Router("r1").Modified; e.id(t) != want {
		t.Errorf("id %s, want the revision %d", e.last, want)
	}
	l.must(200, "PUT", routersPath+"/r1", routerBody("r1", `,"internal":["n1"],"external":{"ip":"192.0.2.9","network":"ext"}`))
	list := r.until("KUBEVIRT_ROUTER_UPDATED")
	if got, want := namesOf(list), []string{"KUBEVIRT_ROUTER_EXTERNAL_NETWORK_ATTACHED", "KUBEVIRT_ROUTER_INTERNAL_NETWORKS_ATTACHED", "KUBEVIRT_ROUTER_UPDATED"}; !slices.Equal(got, want) {
		t.Errorf("names %q, want %q", got, want)
	}
	for i, x := range list {
		if v := x.content(t); v.Old["internal"] != nil || v.New["internal"] == nil {
			t.Errorf("data %s", x.data)
		}
		if whole := i == len(list)-1; (x.last == e.last) == whole {
			t.Errorf("event %d of %d may be resumed after %s; the revision before has %s", i+1, len(list), x.last, e.last)
		}
	}
	l.must(204, "DELETE", routersPath+"/r1", "")
	if e := r.next(); e.name != "KUBEVIRT_ROUTER_REMOVED" || e.content(t).New != nil || e.content(t).Old["name"] != "r1" {
		t.Errorf("removed: %+v", e)
	}
}

func TestSecretsAreInNoEvent(t *testing.T) {
	l := newLab(t)
	r := l.listen("").placed()
	l.must(201, "POST", nodePath+"/api-config", `{"scheme":"HTTP","ipAddress":"192.0.2.250","port":6443,"token":"s3cret","clientKeyData":"s3cret"}`)
	if e := r.next(); e.name != "KUBEVIRT_API_CONFIG_CREATED" || e.content(t).New["port"] != 6443.0 || strings.Contains(e.data, "s3cret") {
		t.Errorf("event %+v", e)
	}
}

func TestAStreamGoesOnWhereTheClientWasWithoutAGap(t *testing.T) {
	l := newLab(t)
	l.must(201, "POST", routersPath, routerBody("r1", ""))
	r := l.listen("").placed()
	if r.last == strconv.FormatInt(l.db.Snapshot().Revision()-1, 10) {
		r.until("KUBEVIRT_ROUTER_CREATED") // the stream was quicker than the feed
	}
	l.must(200, "PUT", routersPath+"/r1", routerBody("r1", `,"internal":["n1"]`))
	list := r.until("KUBEVIRT_ROUTER_INTERNAL_NETWORKS_ATTACHED")
	half := list[len(list)-1]
	_ = r.body.Close() // in the midst of a revision
	l.must(204, "DELETE", routersPath+"/r1", "")
	want := []string{"KUBEVIRT_ROUTER_INTERNAL_NETWORKS_ATTACHED", "KUBEVIRT_ROUTER_UPDATED", "KUBEVIRT_ROUTER_REMOVED"}
	for _, r := range []*eventReader{
		l.listen("?since=" + half.last), l.listen("", "Last-Event-ID", half.last),
		l.listen("?since=0", "Last-Event-ID", half.last), // an EventSource repeats its address
	} {
		list := r.placed().until("KUBEVIRT_ROUTER_REMOVED")
		if got := namesOf(list); !slices.Equal(got, want) {
			t.Errorf("events %q, want %q", got, want)
		}
		// And from the end of all of them: nothing is sent twice.
		again := l.listen("?since=" + list[len(list)-1].last).placed()
		l.must(201, "POST", routersPath, routerBody("next", ""))
		if e := again.next(); e.content(t).Key != "next" {
			t.Errorf("after the end came %+v", e)
		}
		l.must(204, "DELETE", routersPath+"/next", "")
	}
}

func TestAClientThatMissedEventsIsToldToListAnew(t *testing.T) {
	l := newLab(t, func(c *Config) { c.Limits.Events.Keep = 1 })
	before := l.db.Snapshot().Revision()
	old := l.listen("").placed()
	l.must(201, "POST", routersPath, routerBody("r1", ""))
	l.must(201, "POST", routersPath, routerBody("r2", ""))
	old.until("KUBEVIRT_ROUTER_CREATED")
	second := old.until("KUBEVIRT_ROUTER_CREATED")[0]
	for _, since := range []int64{0, before, second.id(t) + 1000} {
		r := l.listen("?since=" + strconv.FormatInt(since, 10))
		e := r.next()
		var v struct{ Revision int64 }
		if err := json.Unmarshal([]byte(e.data), &v); err != nil || e.name != "RESYNC" || v.Revision != second.id(t) || e.last != second.last {
			t.Errorf("since %d: %+v, want RESYNC at %s", since, e, second.last)
		}
		l.must(200, "PUT", routersPath+"/r1", routerBody("r1", `,"description":"`+e.last+`"`))
		if e := r.next(); e.name != "KUBEVIRT_ROUTER_UPDATED" {
			t.Errorf("then came %+v", e)
		}
		second = old.next()
	}
	if r := l.listen("?since=" + second.last).placed(); r.last != second.last {
		t.Errorf("the present revision %s is known, the stream began at %s", second.last, r.last)
	}
}

func TestWhoMayHaveEvents(t *testing.T) {
	l := newLab(t, func(c *Config) { c.Limits.Events.Streams = 1 })
	viewer := func(more ...string) map[string]string {
		h := map[string]string{"Authorization": viewerAuth}
		for i := 0; i < len(more); i += 2 {
			h[more[i]] = more[i+1]
		}
		return h
	}
	for _, c := range []struct {
		path    string
		headers map[string]string
		want    int
	}{
		{eventsPath, nil, 401},
		{eventsPath, viewer("Accept", "application/json"), 406},
		{eventsPath + "?since=x", viewer(), 400},
		{eventsPath + "?since=-1", viewer("Accept", "text/event-stream"), 400},
		{eventsPath + "?since=1", viewer("Last-Event-ID", "99999999999999999999"), 400},
	} {
		if r := l.send("GET", c.path, c.headers, nil); r.status != c.want || !strings.Contains(string(r.body), `"code":`) {
			t.Errorf("%s %v: %d %s, want %d", c.path, c.headers, r.status, r.body, c.want)
		}
	}
	if r := l.send("HEAD", eventsPath, viewer(), nil); r.status != 200 || r.header.Get("Content-Type") != streamType {
		t.Errorf("HEAD: %d %v", r.status, r.header)
	}
	first := l.listen("", "Accept", "text/event-stream").placed()
	if r := l.send("GET", eventsPath, viewer(), nil); r.status != 503 || r.header.Get("Retry-After") == "" {
		t.Errorf("a second stream: %d %v", r.status, r.header)
	}
	_ = first.body.Close()
	eventually(t, "a place for another stream", func() bool { return len(l.server.feed.places) == 0 })
	l.listen("").placed()
}

// A stream is longer than any request may take, and shows that it is alive.
func TestAQuietStreamStaysOpen(t *testing.T) {
	l := newLab(t, func(c *Config) {
		c.Limits.Request, c.Limits.Response, c.Limits.Events.KeepAlive = 20*time.Millisecond, 20*time.Millisecond, 10*time.Millisecond
	})
	r := l.listen("").placed()
	for r.pulses < 20 {
		if _, err := r.block(); err != nil {
			t.Fatalf("after %d signs of life: %v", r.pulses, err)
		}
	}
	// A request of this server's would have to be answered in its 20 ms.
	if _, err := l.store.Create(t.Context(), &model.Router{Name: "r1"}); err != nil {
		t.Fatal(err)
	}
	if e := r.next(); e.name != "KUBEVIRT_ROUTER_CREATED" {
		t.Errorf("event %+v", e)
	}
}

func TestAStreamEndsSoThatItsClientSignsInAgain(t *testing.T) {
	l := newLab(t, func(c *Config) { c.Limits.Events.Life = time.Millisecond })
	if _, err := io.Copy(io.Discard, l.listen("").body); err != nil {
		t.Errorf("the stream ends with %v", err)
	}
}

func TestStreamsEndWithTheServer(t *testing.T) {
	st, db := realStore(t)
	s, err := New(Config{Listen: "127.0.0.1:0", MetricsListen: "-", Store: st, DB: db, Inspector: quiet{},
		Logger: slog.New(slog.DiscardHandler), Limits: Limits{Shutdown: time.Minute}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx) }()
	l := &lab{t, s, &http.Client{Transport: &http.Transport{}}, db, st}
	defer l.client.CloseIdleConnections()
	r := l.listen("").placed()
	stop()
	if _, err := io.Copy(io.Discard, r.body); err != nil {
		t.Errorf("the stream ends with %v", err)
	}
	select {
	case err := <-served:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("the server waits for the stream")
	}
}

func TestASlowClientIsCutOffAndHoldsNobodyUp(t *testing.T) {
	var text syncBuffer
	l := newLab(t, func(c *Config) {
		c.Limits.Events.Write, c.Limits.Events.Keep = 2*time.Second, 1
		c.Logger = slog.New(slog.NewTextHandler(&text, nil))
	})
	conn, err := net.Dial("tcp", l.server.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if err := conn.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, "GET "+eventsPath+" HTTP/1.1\r\nHost: x\r\nAuthorization: "+viewerAuth+"\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	// It reads the header and the beginning, and nothing more.
	if _, err := bufio.NewReaderSize(conn, 16).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	quick := l.listen("").placed()
	l.must(201, "POST", routersPath, routerBody("r", ""))
	quick.next()
	long := strings.Repeat("x", 256<<10)
	for i, end := 0, time.Now().Add(time.Minute); !strings.Contains(text.String(), "cut off"); i++ {
		if time.Now().After(end) {
			t.Fatal("a client that reads nothing is not cut off")
		}
		l.must(200, "PUT", routersPath+"/r", routerBody("r", `,"description":"`+strconv.Itoa(i)+long+`"`))
		if e := quick.next(); e.name != "KUBEVIRT_ROUTER_UPDATED" {
			t.Fatalf("the other client got %s", e.name)
		}
	}
	if !strings.Contains(text.String(), "user=guest") {
		t.Errorf("log %s", text.String())
	}
	eventually(t, "only the quick client is left", func() bool { return len(l.server.feed.places) == 1 })
}

// TestStreamsEndWithTheirAccount: whoever is removed, or gets another password, reads
// no further event; another role of the same account is no reason to end.
func TestStreamsEndWithTheirAccount(t *testing.T) {
	users := filepath.Join(t.TempDir(), "users")
	onos, gone, other := "onos:"+hashOf(t, "rocks")+":admin", "gone:"+hashOf(t, "g")+":viewer", "other:"+hashOf(t, "o")
	writeUsers(t, users, onos, gone, other+":viewer")
	l := newLab(t, func(c *Config) {
		c.Accounts.UsersFile, c.Limits.Events.KeepAlive = users, 20*time.Millisecond
	})
	open := func(name, password string) *eventReader {
		return l.listen("", "Authorization", basic(name, password)["Authorization"]).placed()
	}
	first, second := open("gone", "g"), open("other", "o")
	writeUsers(t, users, onos, other+":admin")
	for {
		if _, err := first.block(); err != nil {
			break // the stream's own deadline is minutes away
		}
	}
	l.must(201, "POST", networksPath, networkBody("n"))
	if e := second.next(); e.name != "KUBEVIRT_NETWORK_CREATED" {
		t.Errorf("the account that stayed reads %+v", e)
	}
	writeUsers(t, users, onos, "other:"+hashOf(t, "changed")+":viewer")
	for {
		if _, err := second.block(); err != nil {
			break
		}
	}
	eventually(t, "all places are free", func() bool { return len(l.server.feed.places) == 0 })
}
