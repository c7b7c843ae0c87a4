package rest

import (
	"errors"
	"net/http"

	"github.com/gin-gonic/gin"

	"kvnet/cluster/store"
	"kvnet/model"
	"kvnet/model/state"
)

const networksPath = networkingPath + "/network"

func (s *Server) networkRoutes() []route {
	return []route{
		{method: http.MethodGet, path: networksPath, output: true, handle: s.listNetworks},
		{method: http.MethodPost, path: networksPath, input: true, output: true, handle: s.createNetwork},
		{method: http.MethodGet, path: networksPath + "/:id", output: true, handle: s.getNetwork},
		{method: http.MethodPut, path: networksPath + "/:id", input: true, output: true, handle: s.updateNetwork},
		// These two declare no type of answer in ONOS, so no Accept is refused.
		{method: http.MethodDelete, path: networksPath + "/:id", handle: s.deleteNetwork},
		{method: http.MethodGet, path: networksPath + "/exist/:id", handle: s.networkExists},
	}
}

func (s *Server) listNetworks(c *gin.Context) error {
	return answer(c, http.StatusOK, map[string]any{"networks": networkList(s.db.Snapshot())})
}

func networkList(db state.Snapshot) []any {
	list := []any{}
	for n := range db.Networks() {
		list = append(list, encodeNetwork(n))
	}
	return list
}

func (s *Server) getNetwork(c *gin.Context) error {
	id, err := param(c, "id")
	if err != nil {
		return err
	}
	n := s.db.Snapshot().Network(id)
	if n == nil {
		return refuse(http.StatusNotFound, "Network is not found for %s", shown(id))
	}
	return answer(c, http.StatusOK, encodeNetwork(n))
}

func (s *Server) networkExists(c *gin.Context) error {
	id, err := param(c, "id")
	if err != nil {
		return err
	}
	return answer(c, http.StatusOK, map[string]bool{"result": s.db.Snapshot().Network(id) != nil})
}

func (s *Server) createNetwork(c *gin.Context) error {
	n, err := decodeEdge[networkJSON](bodyOf(c))
	if err != nil {
		return err
	}
	about(c, n.key())
	ctx, cancel := storeContext(c)
	defer cancel()
	rev, err := s.store.Create(ctx, n.apply(nil))
	if errors.Is(err, store.ErrExists) {
		return badRequest("%s already exists", shown(n.key()))
	} else if err != nil {
		return storeFault(err)
	}
	s.settle(c, rev)
	for _, w := range n.warnings() {
		warn(c, w)
	}
	c.Header("Location", location(c.Request, networksPath, n.key()))
	empty(c, http.StatusCreated)
	return nil
}

func (s *Server) updateNetwork(c *gin.Context) error {
	id, err := param(c, "id")
	if err != nil {
		return err
	}
	n, err := decodeEdge[networkJSON](bodyOf(c))
	if err != nil {
		return err
	}
	if n.key() != id {
		return badRequest("Invalid networkId in network update request: networkId %q is not %q of the path", shown(n.key()), shown(id))
	}
	ctx, cancel := storeContext(c)
	defer cancel()
	rev, err := s.store.Update(ctx, model.KindNetwork, id, func(old model.Object) (model.Object, error) {
		return n.apply(old), nil
	})
	if errors.Is(err, store.ErrNotFound) {
		return badRequest("%s does not exist", shown(id))
	} else if err != nil {
		return storeFault(err)
	}
	s.settle(c, rev)
	for _, w := range n.warnings() {
		warn(c, w)
	}
	empty(c, http.StatusOK)
	return nil
}

func (s *Server) deleteNetwork(c *gin.Context) error {
	id, err := param(c, "id")
	if err != nil {
		return err
	}
	ctx, cancel := storeContext(c)
	defer cancel()
	rev, err := s.store.Delete(ctx, model.KindNetwork, id)
	if errors.Is(err, store.ErrNotFound) {
		return badRequest("%s does not exist", shown(id))
	} else if err != nil {
		return storeFault(err)
	}
	s.settle(c, rev)
	empty(c, http.StatusNoContent)
	return nil
}
