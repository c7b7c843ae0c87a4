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

func (s *Server) flows(c *gin.Context) error {
	owner, sw := c.Query("owner"), c.Query("switch")
	if sw != "" {
		d, err := model.ParseDPID(sw)
		if err != nil {
			return badRequest("switch: %s", shown(err.Error()))
		}
		sw = d.String()
	}
	report := s.inspector.Flows(sw, owner)
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
	return answer(c, http.StatusOK, out)
}

func (s *Server) switches(c *gin.Context) error {
	list := s.inspector.Switches()
	if list == nil {
		list = []SwitchView{}
	}
	return answer(c, http.StatusOK, map[string]any{"switches": list})
}

// memberJSON is ONOS's form of a cluster node.
type memberJSON struct {
	ID      string `json:"id"`
	IP      string `json:"ip"`
	TCPPort int    `json:"tcpPort"`
	Status  string `json:"status"`
	// LastUpdate is the time in milliseconds, as text.
	LastUpdate string `json:"lastUpdate"`
}

func (s *Server) cluster(c *gin.Context) error {
	list := []memberJSON{}
	for _, m := range s.inspector.Cluster() {
		list = append(list, memberJSON{m.ID, m.IP, m.TCPPort, m.Status, strconv.FormatInt(m.LastUpdate.UnixMilli(), 10)})
	}
	return answer(c, http.StatusOK, map[string]any{"nodes": list})
}
