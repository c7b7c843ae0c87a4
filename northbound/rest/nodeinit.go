package rest

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"

	"github.com/gin-gonic/gin"

	"kvnet/cluster/store"
	"kvnet/model"
	"kvnet/model/state"
)

// initRoutes are the calls that start bootstraps again. ONOS has them as GETs; a
// POST is what they should have been.
func (s *Server) initRoutes() []route {
	var out []route
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		out = append(out,
			route{method: method, path: nodesPath + "/init/:hostname", output: true, changes: true, handle: s.initNode},
			route{method: method, path: nodesPath + "/init/all", output: true, changes: true, handle: s.initAll},
			route{method: method, path: nodesPath + "/init/incomplete", output: true, changes: true, handle: s.initIncomplete},
			route{method: method, path: nodesPath + "/sync/rules", output: true, changes: true, long: true, handle: s.syncRules},
		)
	}
	return out
}

// initNode starts the bootstrap of a node again.
//
// @ID          initNode
// @Summary     Bootstrap a node again
// @Description A GET that changes something, as in ONOS.
// @Tags        node
// @Produce     json
// @Param       hostname path string true "hostname of the node" extensions(x-example=worker-1)
// @Success     200 {object} object "the node goes through its bootstrap again"
// @Failure     400,404,409,507
// @Router      /onos/kubevirtnode/node/init/{hostname} [get]
func (s *Server) initNode(c *gin.Context) error {
	host, err := param(c, "hostname")
	if err != nil {
		return err
	}
	ctx, cancel := s.storeContext(c)
	defer cancel()
	_, rev, err := s.requestInit(ctx, host)
	if errors.Is(err, store.ErrNotFound) {
		return refuse(http.StatusNotFound, "Node is not found for %s", shown(host))
	} else if err != nil {
		return storeFault(err)
	}
	s.settle(c, rev)
	return s.answer(c, http.StatusOK, struct{}{})
}

// initAll starts the bootstrap of all nodes again.
//
// @ID          initAllNodes
// @Summary     Bootstrap all nodes again
// @Description A GET that changes something, as in ONOS.
// @Tags        node
// @Produce     json
// @Success     200 {object} object "the nodes go through their bootstrap again"
// @Failure     409,507
// @Router      /onos/kubevirtnode/node/init/all [get]
func (s *Server) initAll(c *gin.Context) error {
	return s.initNodes(c, func(model.NodeState) bool { return true })
}

// initIncomplete starts the bootstrap of all nodes that aren't COMPLETE again.
//
// @ID          initIncompleteNodes
// @Summary     Bootstrap all nodes that aren't COMPLETE again
// @Description A GET that changes something, as in ONOS.
// @Tags        node
// @Produce     json
// @Success     200 {object} object "these nodes go through their bootstrap again"
// @Failure     409,507
// @Router      /onos/kubevirtnode/node/init/incomplete [get]
func (s *Server) initIncomplete(c *gin.Context) error {
	return s.initNodes(c, func(st model.NodeState) bool { return st != model.NodeComplete })
}

func (s *Server) initNodes(c *gin.Context, pick func(model.NodeState) bool) error {
	ctx, cancel := s.storeContext(c)
	defer cancel()
	_, rev, err := s.requestInits(ctx, pick)
	if err != nil {
		return storeFault(err)
	}
	s.settle(c, rev)
	return s.answer(c, http.StatusOK, struct{}{})
}

// initWriters is the number of nodes that are asked for at a time.
const initWriters = 8

// requestInits asks for the bootstrap of all nodes in a state that pick picks. A
// node that is deleted meanwhile counts for nothing.
func (s *Server) requestInits(ctx context.Context, pick func(model.NodeState) bool) (requests map[string]uint64, revision int64, err error) {
	db := s.db.Snapshot()
	revision = db.Revision()
	var hosts []string
	for n := range db.Nodes() {
		if pick(db.NodeState(n.Hostname)) {
			hosts = append(hosts, n.Hostname)
		}
	}
	requests = make(map[string]uint64, len(hosts))
	var mu sync.Mutex
	var wg sync.WaitGroup
	next := make(chan string)
	for range min(initWriters, len(hosts)) {
		wg.Go(func() {
			for host := range next {
				n, rev, failed := s.requestInit(ctx, host)
				mu.Lock()
				switch {
				case errors.Is(failed, store.ErrNotFound):
				case failed != nil:
					err = errors.Join(err, failed)
				default:
					requests[host], revision = n, max(revision, rev)
				}
				mu.Unlock()
			}
		})
	}
	for _, host := range hosts {
		next <- host
	}
	close(next)
	wg.Wait()
	return requests, revision, err
}

// syncRules starts the bootstrap of every COMPLETE node again, all at a time, and
// waits until they are COMPLETE anew. As in ONOS the answer is 200 in any case;
// nodes that didn't make it are named in a key of their own.
//
// @ID          syncRules
// @Summary     Make the rules of all COMPLETE nodes again
// @Description Every COMPLETE node goes through its bootstrap again, and the call waits until they are COMPLETE anew, for 15 seconds at most. A GET that changes something, as in ONOS.
// @Tags        node
// @Produce     json
// @x-optional  ["failed"]
// @Success     200 {object} object{failed=[]string} "an empty object; or failed, if nodes didn't become COMPLETE in time"
// @Failure     409,507
// @Router      /onos/kubevirtnode/node/sync/rules [get]
func (s *Server) syncRules(c *gin.Context) error {
	// Asking takes a place, waiting takes none.
	if err := s.turn(c, s.writers); err != nil {
		return err
	}
	defer release(c)
	ctx, cancel := s.storeContext(c)
	defer cancel()
	requests, rev, err := s.requestInits(ctx, func(st model.NodeState) bool { return st == model.NodeComplete })
	if err != nil {
		return storeFault(err)
	}
	s.settle(c, rev)
	release(c)
	ctx, cancel = context.WithTimeout(c.Request.Context(), s.limits.Sync)
	defer cancel()
	if s.db.Wait(ctx, func(db state.Snapshot) bool { return len(unsynced(db, requests)) == 0 }) == nil {
		return s.answer(c, http.StatusOK, struct{}{})
	}
	return s.answer(c, http.StatusOK, map[string]any{"failed": unsynced(s.db.Snapshot(), requests)})
}

// unsynced lists the nodes whose request has not led to COMPLETE yet.
func unsynced(db state.Snapshot, requests map[string]uint64) []string {
	out := []string{}
	for host, request := range requests {
		if db.Node(host) == nil {
			continue
		}
		if st := db.NodeStatus(host); st == nil || st.InitRequest < request || st.State != model.NodeComplete {
			out = append(out, host)
		}
	}
	slices.Sort(out)
	return out
}
