package rest

import (
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"kvnet/model"
	"kvnet/model/state"
)

// mm5Path is the resource of the MEC orchestrator's reference point Mm5.
const mm5Path = networkingPath + "/api/mm5/v1"

// mm5Kinds are the kinds that Mm5 knows, with the key of the list and what is in
// it.
var mm5Kinds = []struct {
	name, wrapper string
	kind          model.Kind
}{
	{"network", "networks", model.KindNetwork},
	{"instance", "instances", ""}, // made of the ports
	{"vr", "virtualRouters", model.KindRouter},
	{"fip", "floatingIps", model.KindFloatingIP},
	{"lb", "loadBalancers", model.KindLoadBalancer},
}

func (s *Server) mm5Routes() []route {
	out := []route{
		{method: http.MethodGet, path: mm5Path + "/status/vr/:name", output: true, handle: s.routerStatus},
		// ONOS has only the PUT, which reads; a GET is what it should have been.
		{method: http.MethodPut, path: mm5Path + "/state/mer/:name", output: true, handle: s.gatewayState},
		{method: http.MethodGet, path: mm5Path + "/state/mer/:name", output: true, handle: s.gatewayState},
	}
	for _, k := range mm5Kinds {
		path := mm5Path + "/" + k.name
		out = append(out,
			route{method: http.MethodGet, path: path, output: true, handle: func(c *gin.Context) error {
				if k.kind == "" {
					return s.answer(c, http.StatusOK, map[string]any{k.wrapper: instanceList(s.db.Snapshot())})
				}
				return s.answerList(c, k.wrapper, k.kind)
			}},
			route{method: http.MethodPost, path: path, typed: true, output: true, handle: s.acknowledge},
			route{method: http.MethodPut, path: path + "/:name", typed: true, output: true, handle: s.acknowledge},
			route{method: http.MethodDelete, path: path + "/:name", output: true, handle: s.acknowledge},
		)
	}
	return out
}

// acknowledge answers the writes of Mm5, which do nothing in ONOS either.
func (s *Server) acknowledge(c *gin.Context) error {
	s.log.Warn("a write by Mm5 was acknowledged, and nothing was changed, as in ONOS",
		"method", c.Request.Method, "path", shown(c.Request.URL.Path))
	warn(c, "nothing was changed: writes by Mm5 are only acknowledged")
	return s.answer(c, http.StatusOK, struct{}{})
}

// routerStatus says which gateway serves a router.
//
// @ID      mm5RouterStatus
// @Summary Which gateway serves a router?
// @Tags    api/mm5/v1
// @Produce json
// @Param   vrName path string true "name of the router" extensions(x-example=edge)
// @Success 200 {object} rest.routerStatus.status "the gateway"
// @Failure 400,404
// @Router  /onos/kubevirtnetworking/api/mm5/v1/status/vr/{vrName} [get]
func (s *Server) routerStatus(c *gin.Context) error {
	name, err := param(c, "name")
	if err != nil {
		return err
	}
	db := s.db.Snapshot()
	r := db.Router(name)
	if r == nil {
		return refuse(http.StatusNotFound, "Router is not found for %s", shown(name))
	}
	type status struct {
		VRName string `json:"vrName" validate:"required" example:"edge"`
		// The gateway's hostname, or none.
		MerName string `json:"merName" validate:"required" example:"gateway-1"`
		Status  string `json:"status" validate:"required" enums:"up,down" example:"up"`
		// The time of the answer, in milliseconds.
		TimeUpdated int64 `json:"timeUpdated" validate:"required" example:"1767225600000"`
	} // @name Mm5RouterStatus
	out := status{name, "none", "down", time.Now().UnixMilli()}
	if gw := shownGateway(db, r); gw != "" {
		out.MerName, out.Status = gw, "up"
	}
	return s.answer(c, http.StatusOK, out)
}

// gatewayState says whether a node is a gateway that can serve.
//
// @ID          mm5GatewayState
// @Summary     Can a gateway node serve?
// @Description Reads only, though ONOS made it a PUT. A node that doesn't exist, is no gateway or isn't COMPLETE is INACTIVE.
// @Tags        api/mm5/v1
// @Produce     json
// @Param       nodeName path string true "hostname of the node" extensions(x-example=gateway-1)
// @Success     200 {object} rest.gatewayState.nodeState "its state"
// @Failure     400
// @Router      /onos/kubevirtnetworking/api/mm5/v1/state/mer/{nodeName} [put]
func (s *Server) gatewayState(c *gin.Context) error {
	name, err := param(c, "name")
	if err != nil {
		return err
	}
	type nodeState struct {
		NodeName string `json:"nodeName" validate:"required" example:"gateway-1"`
		State    string `json:"state" validate:"required" enums:"ACTIVE,INACTIVE" example:"ACTIVE"`
	} // @name Mm5GatewayState
	out := nodeState{name, "INACTIVE"}
	db := s.db.Snapshot()
	if n := db.Node(name); n != nil && n.Type == model.NodeGateway && db.NodeState(name) == model.NodeComplete {
		out.State = "ACTIVE"
	}
	return s.answer(c, http.StatusOK, out)
}

// instanceJSON is a VM with its ports.
type instanceJSON struct {
	Name  string      `json:"name" validate:"required" example:"vm1"`
	Ports []*portJSON `json:"ports" validate:"required"`
} // @name KubevirtInstance

// instanceList lists the VMs that have ports.
func instanceList(db state.Snapshot) []any {
	list := []any{}
	byName := map[string]*instanceJSON{}
	for p := range db.Ports() {
		vm := byName[p.VMName]
		if vm == nil {
			vm = &instanceJSON{Name: p.VMName}
			byName[p.VMName] = vm
			list = append(list, vm)
		}
		vm.Ports = append(vm.Ports, encodePort(p))
	}
	return list
}
