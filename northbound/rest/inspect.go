package rest

import (
	"net/http"
	"strconv"

	"github.com/gin-gonic/gin"

	"kvnet/model"
)

func (s *Server) inspectRoutes() []route {
	return []route{
		{method: http.MethodGet, path: ownPath + "/flows", output: true, stateless: true, handle: s.flows},
		{method: http.MethodGet, path: ownPath + "/switches", output: true, stateless: true, handle: s.switches},
		{method: http.MethodGet, path: "/onos/v1/cluster", output: true, stateless: true, handle: s.cluster},
	}
}

// flows lists the rules that kvnet wants on the switches, and who waits for what.
//
// @ID          listFlows
// @Summary     Rules on the switches
// @Description Every rule that kvnet wants, by owner, with what became of it on each switch; and the owners whose rules can't be made yet, with what they wait for. Only the leader knows; another server answers 503 and names it.
// @Tags        inspection
// @Produce     json
// @Param       switch query string false "only the switch of this datapath id" extensions(x-example=of:0000000000000001)
// @Param       owner  query string false "only the rules of this owner and of those below it; snat/r1 means snat/r1/port/1, too" extensions(x-example=snat/edge)
// @Success     200 {object} FlowsReport "the rules"
// @Failure     400
// @x-added     true
// @Router      /kvnet/v1/flows [get]
func (s *Server) flows(c *gin.Context) error {
	owner, sw := c.Query("owner"), c.Query("switch")
	if sw != "" {
		d, err := model.ParseDPID(sw)
		if err != nil {
			return badRequest("switch: %s", shown(err.Error()))
		}
		sw = d.String()
	}
	report, err := s.inspector.Flows(sw, owner)
	if err != nil {
		return &apiError{code: http.StatusServiceUnavailable, retryAfter: 1, expected: true, message: "only the leader knows the rules: " + err.Error()}
	}
	out := FlowsReport{Flows: []FlowView{}, Waiting: []WaitingView{}}
	for _, f := range report.Flows {
		if OwnerMatches(owner, f.Owner) && (sw == "" || sw == f.Switch) {
			out.Flows = append(out.Flows, f)
		}
	}
	for _, w := range report.Waiting {
		if OwnerMatches(owner, w.Owner) {
			out.Waiting = append(out.Waiting, w)
		}
	}
	return s.answer(c, http.StatusOK, out)
}

// switches lists the switches that have been connected.
//
// @ID          listSwitches
// @Summary     Switches
// @Description The switches as the server that is asked sees them: each server has connections and roles of its own. Rules and groups are counted by the leader only; another server shows 0.
// @Tags        inspection
// @Produce     json
// @Success     200 {object} object{switches=[]SwitchView} "the switches"
// @x-added     true
// @Router      /kvnet/v1/switches [get]
func (s *Server) switches(c *gin.Context) error {
	list := s.inspector.Switches()
	if list == nil {
		list = []SwitchView{}
	}
	return s.answer(c, http.StatusOK, map[string]any{"switches": list})
}

// memberJSON is ONOS's form of a cluster node.
type memberJSON struct {
	ID      string `json:"id" validate:"required" example:"server-1"`
	IP      string `json:"ip" validate:"required" example:"192.0.2.251"`
	TCPPort int    `json:"tcpPort" validate:"required" example:"7946"`
	Status  string `json:"status" validate:"required" enums:"READY,ACTIVE,INACTIVE" example:"READY"`
	// LastUpdate is the time in milliseconds, as text.
	LastUpdate string `json:"lastUpdate" validate:"required" example:"1767225600000"`
} // @name ClusterNode

// cluster lists the members of the cluster as ONOS's core does.
//
// @ID      listClusterNodes
// @Summary Members of the cluster, in ONOS's form
// @Tags    cluster
// @Produce json
// @Success 200 {object} object{nodes=[]memberJSON} "the members"
// @x-added true
// @Router  /onos/v1/cluster [get]
func (s *Server) cluster(c *gin.Context) error {
	list := []memberJSON{}
	for _, m := range s.inspector.Cluster() {
		list = append(list, memberJSON{m.ID, m.IP, m.TCPPort, m.Status, strconv.FormatInt(m.LastUpdate.UnixMilli(), 10)})
	}
	return s.answer(c, http.StatusOK, map[string]any{"nodes": list})
}
