package rest

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"kvnet/cluster/store"
	"kvnet/model/state"
)

func TestAnswersNameTheRevisionThatTheyAreAbout(t *testing.T) {
	l := newLab(t)
	read := func(header http.Header) int64 {
		t.Helper()
		n, err := strconv.ParseInt(header.Get("X-Kvnet-Revision"), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	before := read(l.must(http.StatusOK, http.MethodGet, networksPath, "").header)
	written := read(l.must(http.StatusCreated, http.MethodPost, nodesPath, `{"nodes":[{"hostname":"w1","type":"WORKER","managementIp":"192.0.2.1"}]}`).header)
	after := read(l.must(http.StatusOK, http.MethodGet, networksPath+"?consistent=true", "").header)
	if before >= written || after < written {
		t.Errorf("revision %d before the write of revision %d, %d after it", before, written, after)
	}
}

func TestConsistentReadsWaitForWhatIsInForce(t *testing.T) {
	f := &faultyStore{revision: 2}
	db := emptyState() // at revision 1
	l := newLab(t, func(c *Config) { c.Store, c.DB, c.Trouble = f, db, func() string { return "s2 is missing" } })
	answered := make(chan int, 1)
	go func() {
		answered <- l.send(http.MethodGet, networksPath+"?consistent=true", map[string]string{"Authorization": viewerAuth}, nil).status
	}()
	if got := l.must(http.StatusOK, http.MethodGet, networksPath+"?consistent=false", "").header.Get("X-Kvnet-Revision"); got != "1" {
		t.Errorf("a read that is not to be consistent has revision %q", got)
	}
	select {
	case status := <-answered:
		t.Fatalf("%d before the revision was there", status)
	default:
	}
	if err := db.Apply(2, []state.Event{}); err != nil {
		t.Fatal(err)
	}
	select {
	case status := <-answered:
		if status != http.StatusOK {
			t.Errorf("status %d", status)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("no answer")
	}
	l.must(http.StatusBadRequest, http.MethodGet, networksPath+"?consistent=maybe", "")

	f.err = store.ErrUnavailable
	r := l.must(http.StatusServiceUnavailable, http.MethodGet, networksPath+"?consistent=true", "")
	if r.header.Get("Retry-After") == "" || !strings.Contains(string(r.body), "; s2 is missing") {
		t.Errorf("Retry-After %q, %s", r.header.Get("Retry-After"), r.body)
	}
	l.must(http.StatusOK, http.MethodGet, networksPath, "")
}

func TestAServerSaysWhatItWaitsFor(t *testing.T) {
	l := newLab(t, func(c *Config) {
		c.DB, c.Waiting = state.New(), func() string { return "waiting for 2 more servers" }
	})
	l.must(http.StatusOK, http.MethodGet, "/livez", "")
	for _, path := range []string{"/readyz", networksPath} {
		if r := l.must(http.StatusServiceUnavailable, http.MethodGet, path, ""); !strings.Contains(string(r.body), "waiting for 2 more servers") {
			t.Errorf("%s: %s", path, r.body)
		}
	}
	if r := l.must(http.StatusServiceUnavailable, http.MethodPost, networksPath, networkBody("n")); !strings.Contains(string(r.body), "waiting for 2 more servers; nothing was stored") {
		t.Errorf("a write: %s", r.body)
	}
}
