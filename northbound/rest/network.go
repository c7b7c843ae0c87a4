package rest

import (
	"errors"
	"net/http"

	"github.com/gin-gonic/gin"

	"kvnet/cluster/store"
	"kvnet/model"
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

// listNetworks lists all networks.
//
// @ID      listNetworks
// @Summary All networks
// @Tags    network
// @Produce json
// @Success 200 {object} object{networks=[]networkJSON} "the networks, in no order that means something"
// @Router  /onos/kubevirtnetworking/network [get]
func (s *Server) listNetworks(c *gin.Context) error {
	return s.answerList(c, "networks", model.KindNetwork)
}

// getNetwork shows one network.
//
// @ID      getNetwork
// @Summary One network
// @Tags    network
// @Produce json
// @Param   id path string true "networkId of the network" extensions(x-example=net-1)
// @Success 200 {object} networkJSON "the network"
// @Failure 400,404
// @Router  /onos/kubevirtnetworking/network/{id} [get]
func (s *Server) getNetwork(c *gin.Context) error {
	id, err := param(c, "id")
	if err != nil {
		return err
	}
	db := s.db.Snapshot()
	n := db.Network(id)
	if n == nil {
		return refuse(http.StatusNotFound, "Network is not found for %s", shown(id))
	}
	return s.answerObject(c, db, n)
}

// networkExists says whether there is a network of an id.
//
// @ID          networkExists
// @Summary     Is there a network of this id?
// @Description The answer is 200 in both cases.
// @Tags        network
// @Param       id path string true "networkId of the network" extensions(x-example=net-1)
// @Success     200 {object} object{result=bool} "whether it exists"
// @Failure     400
// @Router      /onos/kubevirtnetworking/network/exist/{id} [get]
func (s *Server) networkExists(c *gin.Context) error {
	id, err := param(c, "id")
	if err != nil {
		return err
	}
	return s.answer(c, http.StatusOK, map[string]bool{"result": s.db.Snapshot().Network(id) != nil})
}

// createNetwork stores a new network.
//
// @ID          createNetwork
// @Summary     Create a network
// @Description A network whose values hardly work together (a gateway address outside of cidr, say) is stored, and a Warning header of the answer says so. A networkId that exists already is refused with 400, as in ONOS.
// @Tags        network
// @Accept      json
// @Produce     json
// @Param       network body networkJSON true "the network"
// @Success     201 "the network is stored"
// @Failure     409,507
// @Router      /onos/kubevirtnetworking/network [post]
func (s *Server) createNetwork(c *gin.Context) error {
	n, err := decodeEdge[networkJSON](bodyOf(c))
	if err != nil {
		return err
	}
	about(c, n.key())
	ctx, cancel := s.storeContext(c)
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

// updateNetwork replaces a network.
//
// @ID          updateNetwork
// @Summary     Replace a network
// @Description The body is the whole network; its networkId must be that of the path. A network that doesn't exist is refused with 400, as in ONOS.
// @Tags        network
// @Accept      json
// @Produce     json
// @Param       id      path string      true "networkId of the network" extensions(x-example=net-1)
// @Param       network body networkJSON true "the network"
// @Success     200 "the network is replaced"
// @Failure     409,507
// @Router      /onos/kubevirtnetworking/network/{id} [put]
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
	ctx, cancel := s.storeContext(c)
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

// deleteNetwork deletes a network.
//
// @ID          deleteNetwork
// @Summary     Delete a network
// @Description As in ONOS a network that doesn't exist is refused with 400, and what refers to a network doesn't keep it.
// @Tags        network
// @Param       id path string true "networkId of the network" extensions(x-example=net-1)
// @Success     204 "the network is deleted"
// @Failure     400,409,507
// @Router      /onos/kubevirtnetworking/network/{id} [delete]
func (s *Server) deleteNetwork(c *gin.Context) error {
	id, err := param(c, "id")
	if err != nil {
		return err
	}
	ctx, cancel := s.storeContext(c)
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
