package rest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"kvnet/model"
)

// TestAThousandParallelPosts against the real store: of distinct ids each is
// created, of equal ones exactly one, with its own content; nothing is lost.
func TestAThousandParallelPosts(t *testing.T) {
	const requests = 1000
	port := func(id, writer int) string {
		return fmt.Sprintf(`{"vmName":"w%d","networkId":"n","macAddress":"fa:00:00:00:%02x:%02x"}`, writer, id>>8, id&0xff)
	}
	net := func(id, writer int) string {
		return strings.Replace(networkBody(fmt.Sprintf("n%d", id)), `"name":"n`, fmt.Sprintf(`"name":"w%d","x":"`, writer), 1)
	}
	for _, c := range []struct {
		what, path string
		kind       model.Kind
		body       func(id, writer int) string
		writer     func(model.Object) string // who wrote it
		again      int                       // the answer for an id that exists
	}{
		{"networks", networksPath, model.KindNetwork, net, func(o model.Object) string { return o.(*model.Network).Name }, 400},
		{"ports", networkingPath + "/port", model.KindPort, port, func(o model.Object) string { return o.(*model.Port).VMName }, 409},
	} {
		for _, ids := range []int{requests, 50, 1} {
			t.Run(fmt.Sprintf("%s with %d ids", c.what, ids), func(t *testing.T) {
				// A slow machine is no reason to turn clients away.
				l := newLab(t, func(c *Config) { c.Limits.Wait, c.Limits.Store = time.Minute, time.Minute })
				var mu sync.Mutex
				created := map[int][]int{} // id: writers with 201
				start := make(chan struct{})
				var wg sync.WaitGroup
				for writer := range requests {
					id := writer % ids
					wg.Go(func() {
						<-start
						w := l.direct(http.MethodPost, c.path, c.body(id, writer))
						mu.Lock()
						defer mu.Unlock()
						switch w.Code {
						case http.StatusCreated:
							created[id] = append(created[id], writer)
						case c.again:
						default:
							t.Errorf("%s: %d %s", c.body(id, writer), w.Code, w.Body)
						}
					})
				}
				close(start)
				wg.Wait()
				db := l.db.Snapshot()
				if n := db.Len(c.kind); n != ids || len(created) != ids {
					t.Errorf("%d were created, %d are there, want %d", len(created), n, ids)
				}
				won := map[string]bool{}
				for id, writers := range created {
					if len(writers) != 1 {
						t.Errorf("id %d was created by %v", id, writers)
					}
					won[fmt.Sprintf("w%d", writers[0])] = true
				}
				for _, key := range db.Keys(c.kind) {
					if o := db.Get(c.kind, key); !won[c.writer(o)] {
						t.Errorf("%s has the content of %s, who was refused", key, c.writer(o))
					}
				}
				var list map[string][]json.RawMessage
				if err := json.Unmarshal(l.must(200, "GET", c.path, "").body, &list); err != nil || len(list[c.what]) != ids {
					t.Errorf("%d are listed, want %d: %v", len(list[c.what]), ids, err)
				}
			})
		}
	}
}

// direct calls the handler without a connection.
func (l *lab) direct(method, path, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Header.Set("Authorization", adminAuth)
	r.Header.Set("Content-Type", jsonType)
	w := httptest.NewRecorder()
	l.server.handler.ServeHTTP(w, r)
	return w
}
