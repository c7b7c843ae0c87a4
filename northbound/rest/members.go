package rest

import (
	"net/http"

	"github.com/gin-gonic/gin"
)

// Members tells who is in the cluster. It must not block.
type Members interface {
	Members() []Member
}

// Member is a server of the cluster in the answer of GET /kvnet/v1/members.
type Member struct {
	Name string `json:"name"`
	// Address is host:port of its gossip; empty if this server has not met it.
	Address string `json:"address"`
	// State is alive, failed (it doesn't answer) or left (it was stopped).
	State  string `json:"state"`
	Leader bool   `json:"leader"`
	// Voter is false for a server that has not caught up yet, or is not among the
	// members of the store.
	Voter bool `json:"voter"`
	// Term is the newest term that the member knows; absent while it doesn't say so.
	Term    *uint32 `json:"term,omitempty"`
	Version string  `json:"version"`
	// Lag is by how many revisions of the store the member's snapshot is behind;
	// absent while it doesn't say so.
	Lag *int64 `json:"lag,omitempty"`
	// Switches is the number of switches that are connected to it; absent while it
	// doesn't say so.
	Switches *int `json:"switches,omitempty"`
}

func (s *Server) memberRoutes() []route {
	if s.members == nil {
		return nil
	}
	return []route{{method: http.MethodGet, path: ownPath + "/members", output: true, stateless: true, handle: s.listMembers}}
}

// listMembers lists the servers of the cluster.
//
// @ID      listMembers
// @Summary Servers of the cluster
// @Tags    inspection
// @Produce json
// @Success 200 {object} object{members=[]Member} "the servers"
// @x-added true
// @Router  /kvnet/v1/members [get]
func (s *Server) listMembers(c *gin.Context) error {
	list := s.members.Members()
	if list == nil {
		list = []Member{}
	}
	return s.answer(c, http.StatusOK, map[string]any{"members": list})
}
