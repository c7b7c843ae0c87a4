package rest

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/gin-gonic/gin"

	"kvnet/cluster/store"
	"kvnet/model"
	"kvnet/model/state"
)

const nodesPath = nodePath + "/node"

func (s *Server) nodeRoutes() []route {
	return []route{
		{method: http.MethodGet, path: nodesPath, output: true, handle: s.listNodes},
		{method: http.MethodPost, path: nodesPath, input: true, output: true, handle: s.createNodes},
		{method: http.MethodPut, path: nodesPath, input: true, output: true, handle: s.updateNodes},
		{method: http.MethodGet, path: nodesPath + "/:hostname", output: true, handle: s.getNode},
		{method: http.MethodDelete, path: nodesPath + "/:hostname", typed: true, output: true, handle: s.deleteNode},
		{method: http.MethodGet, path: nodesPath + "/state/:hostname", output: true, handle: s.nodeState},
	}
}

// listNodes lists all nodes. ONOS has no such call.
//
// @ID      listNodes
// @Summary All nodes
// @Tags    node
// @Produce json
// @Success 200 {object} object{nodes=[]nodeJSON} "the nodes, in no order that means something"
// @x-added true
// @Router  /onos/kubevirtnode/node [get]
func (s *Server) listNodes(c *gin.Context) error {
	return s.answerList(c, "nodes", model.KindNode)
}

// getNode shows one node. ONOS has no such call.
//
// @ID      getNode
// @Summary One node
// @Tags    node
// @Produce json
// @Param   hostname path string true "hostname of the node" extensions(x-example=worker-1)
// @Success 200 {object} nodeJSON "the node"
// @Failure 400,404
// @x-added true
// @Router  /onos/kubevirtnode/node/{hostname} [get]
func (s *Server) getNode(c *gin.Context) error {
	host, err := param(c, "hostname")
	if err != nil {
		return err
	}
	db := s.db.Snapshot()
	n := db.Node(host)
	if n == nil {
		return refuse(http.StatusNotFound, "Node is not found for %s", shown(host))
	}
	return s.answerObject(c, db, n)
}

// nodeState says in which state a node is.
//
// @ID          nodeState
// @Summary     State of a node
// @Description The answer is 200 for a node that doesn't exist, too: its state is "Not exist".
// @Tags        node
// @Produce     json
// @Param       hostname path string true "hostname of the node" extensions(x-example=worker-1)
// @Success     200 {object} object{State=string} "INIT, DEVICE_CREATED, COMPLETE, INCOMPLETE, PRE_ON_BOARD, ON_BOARDED or Not exist"
// @Failure     400
// @Router      /onos/kubevirtnode/node/state/{hostname} [get]
func (s *Server) nodeState(c *gin.Context) error {
	host, err := param(c, "hostname")
	if err != nil {
		return err
	}
	db := s.db.Snapshot()
	state := "Not exist"
	if db.Node(host) != nil {
		state = string(db.NodeState(host))
	}
	return s.answer(c, http.StatusOK, map[string]string{"State": state})
}

// createNodes stores the nodes that are new, all or none. As in ONOS one that
// exists is left alone and the answer is 201; a Warning says so.
//
// @ID          createNodes
// @Summary     Create nodes
// @Description All nodes are stored, or none. A node that exists already is left as it is, and a Warning header of the answer says so. Bridges that are left out get the ids that ONOS would give them. A bridge that belongs to another node is refused with 400.
// @Tags        node
// @Accept      json
// @Produce     json
// @Param       nodes body nodesJSON true "the nodes"
// @Success     201 "the nodes are stored"
// @Failure     409,507
// @Router      /onos/kubevirtnode/node [post]
func (s *Server) createNodes(c *gin.Context) error {
	body, err := decodeEdge[nodesJSON](bodyOf(c))
	if err != nil {
		return err
	}
	about(c, body.hostnames()...)
	var present []string
	rev, err := s.putNodes(c, func(db state.Snapshot) (changes []store.Write, err error) {
		present = nil
		named := map[string]bool{}
		for i := range *body.Nodes {
			n := (*body.Nodes)[i].model()
			if db.Node(n.Hostname) != nil || named[n.Hostname] {
				present = appendNew(present, n.Hostname)
				continue
			}
			named[n.Hostname] = true
			changes = append(changes, store.Write{New: n})
		}
		return changes, nil
	})
	if err != nil {
		return err
	}
	s.settle(c, rev)
	warnOf(c, body)
	for _, host := range present {
		warn(c, fmt.Sprintf("node %q exists already and was left as it is", shown(host)))
	}
	var segments []string
	if list := *body.Nodes; len(list) == 1 {
		segments = []string{*list[0].Hostname}
	}
	c.Header("Location", location(c.Request, nodesPath, segments...))
	empty(c, http.StatusCreated)
	return nil
}

// errNodeAbsent ends a PUT that names a node which doesn't exist.
var errNodeAbsent = errors.New("a node does not exist")

// updateNodes stores the changed nodes, all or none. As in ONOS the answer is 304
// if one of them doesn't exist.
//
// @ID          updateNodes
// @Summary     Replace nodes
// @Description All nodes are replaced, or none. A node that changes goes through its bootstrap again. Bridges that are left out stay.
// @Tags        node
// @Accept      json
// @Produce     json
// @Param       nodes body nodesJSON true "the nodes"
// @Success     200 "the nodes are replaced"
// @Success     304 "one of the nodes doesn't exist; nothing was changed"
// @Failure     409,507
// @Router      /onos/kubevirtnode/node [put]
func (s *Server) updateNodes(c *gin.Context) error {
	body, err := decodeEdge[nodesJSON](bodyOf(c))
	if err != nil {
		return err
	}
	about(c, body.hostnames()...)
	rev, err := s.putNodes(c, func(db state.Snapshot) (changes []store.Write, err error) {
		index := map[string]int{}
		for i := range *body.Nodes {
			n := &(*body.Nodes)[i]
			old := db.Node(*n.Hostname)
			if old == nil {
				return nil, errNodeAbsent
			}
			j, again := index[old.Hostname]
			if again { // of two nodes of one name the last stands
				changes[j].New = n.update(changes[j].New.(*model.Node))
				continue
			}
			if next := n.update(old); next != old {
				index[old.Hostname] = len(changes)
				changes = append(changes, store.Write{Old: old, New: next})
			}
		}
		return changes, nil
	})
	if errors.Is(err, errNodeAbsent) {
		empty(c, http.StatusNotModified)
		return nil
	} else if err != nil {
		return err
	}
	s.settle(c, rev)
	warnOf(c, body)
	empty(c, http.StatusOK)
	return nil
}

// putAttempts bounds how often a write of several nodes is planned anew because
// somebody else wrote one of them first.
const putAttempts = 5

// putNodes plans a write of several nodes from the snapshot and carries it out.
func (s *Server) putNodes(c *gin.Context, plan func(state.Snapshot) ([]store.Write, error)) (int64, error) {
	ctx, cancel := s.storeContext(c)
	defer cancel()
	for attempt := 1; ; attempt++ {
		db := s.db.Snapshot()
		changes, err := plan(db)
		if err != nil {
			return 0, err
		}
		if len(changes) == 0 {
			return db.Revision(), nil
		}
		if err := bridgesTaken(db, changes); err != nil {
			return 0, err
		}
		rev, err := s.store.Put(ctx, changes)
		if !errors.Is(err, store.ErrConflict) || attempt == putAttempts {
			return rev, storeFault(err)
		}
		// The snapshot was behind: plan again once it has moved on.
		seen := db.Revision()
		if err := s.db.Wait(ctx, func(db state.Snapshot) bool { return db.Revision() > seen }); err != nil {
			return 0, storeFault(fmt.Errorf("%w: %w", store.ErrConflict, err))
		}
	}
}

// bridgesTaken says which node already has a bridge that another one names. The
// store holds the same law; this look gives the field's name, and finds two nodes
// of one request.
func bridgesTaken(db state.Snapshot, changes []store.Write) error {
	owner := map[model.DeviceID]string{}
	for n := range db.Nodes() {
		owner[sameBridge(n.IntegrationBridge)] = n.Hostname
		owner[sameBridge(n.TunnelBridge)] = n.Hostname
	}
	for _, w := range changes {
		if old, ok := w.Old.(*model.Node); ok && w.Old != nil {
			delete(owner, sameBridge(old.IntegrationBridge))
			delete(owner, sameBridge(old.TunnelBridge))
		}
	}
	var f faults
	for _, w := range changes {
		n := w.New.(*model.Node)
		for _, b := range []struct {
			field string
			id    model.DeviceID
		}{{"integrationBridge", n.IntegrationBridge}, {"tunnelBridge", n.TunnelBridge}} {
			if host, ok := owner[sameBridge(b.id)]; ok && host != n.Hostname {
				f.add("%s of node %q: %s is a bridge of node %q already", b.field, shown(n.Hostname), b.id, shown(host))
			}
			owner[sameBridge(b.id)] = n.Hostname
		}
	}
	return f.err()
}

// sameBridge writes the device ids that name one switch alike.
func sameBridge(id model.DeviceID) model.DeviceID {
	if d, ok := id.DPID(); ok {
		return model.DeviceID(d.String())
	}
	return id
}

// deleteNode deletes a node.
//
// @ID      deleteNode
// @Summary Delete a node
// @Tags    node
// @Accept  json
// @Produce json
// @Param   hostname path string true "hostname of the node" extensions(x-example=worker-1)
// @Success 204 "the node is deleted"
// @Success 304 "there is no such node"
// @Failure 400,409,507
// @Failure 405 {object} errorJSON "a node that is named healthz can't be deleted, because that path is another call"
// @Router  /onos/kubevirtnode/node/{hostname} [delete]
func (s *Server) deleteNode(c *gin.Context) error {
	host, err := param(c, "hostname")
	if err != nil {
		return err
	}
	if host == "healthz" { // in ONOS the literal path wins
		c.Header("Allow", "GET, HEAD, OPTIONS")
		return refuse(http.StatusMethodNotAllowed, "HTTP 405 Method Not Allowed: a node of this name can't be deleted")
	}
	ctx, cancel := s.storeContext(c)
	defer cancel()
	rev, err := s.store.Delete(ctx, model.KindNode, host)
	if errors.Is(err, store.ErrNotFound) {
		empty(c, http.StatusNotModified)
		return nil
	} else if err != nil {
		return storeFault(err)
	}
	s.settle(c, rev)
	empty(c, http.StatusNoContent)
	return nil
}

// requestInit asks for the bootstrap of a node once more.
func (s *Server) requestInit(ctx context.Context, host string) (request uint64, revision int64, err error) {
	revision, err = s.store.Update(ctx, model.KindNode, host, func(old model.Object) (model.Object, error) {
		n := *old.(*model.Node)
		n.InitRequest++
		request = n.InitRequest
		return &n, nil
	})
	return request, revision, err
}
