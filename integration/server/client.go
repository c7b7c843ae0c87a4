package server

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// Paths of the REST interface.
const (
	NetworkingPath = "/onos/kubevirtnetworking"
	NodePath       = "/onos/kubevirtnode/node"
)

// Do sends a request with the admin's account. body is encoded as JSON unless it
// is nil.
func (s *Server) Do(ctx context.Context, method, path string, body any) (status int, answer []byte, err error) {
	var reader io.Reader
	if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			return 0, nil, fmt.Errorf("encode body: %w", err)
		}
		reader = bytes.NewReader(encoded)
	}
	request, err := http.NewRequestWithContext(ctx, method, "http://"+s.REST+path, reader)
	if err != nil {
		return 0, nil, fmt.Errorf("make request: %w", err)
	}
	request.SetBasicAuth("onos", "rocks")
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := s.client.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = response.Body.Close() }()
	answer, err = io.ReadAll(response.Body)
	if err != nil {
		return 0, nil, fmt.Errorf("read answer: %w", err)
	}
	return response.StatusCode, answer, nil
}

// Write sends a request that must succeed.
func (s *Server) Write(ctx context.Context, method, path string, body any) error {
	status, answer, err := s.Do(ctx, method, path, body)
	if err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	if status < 200 || status > 299 {
		return fmt.Errorf("%s %s: %d %s", method, path, status, bytes.TrimSpace(answer))
	}
	return nil
}

// Read decodes the answer of a GET into out.
func (s *Server) Read(ctx context.Context, path string, out any) error {
	status, answer, err := s.Do(ctx, http.MethodGet, path, nil)
	if err != nil {
		return fmt.Errorf("GET %s: %w", path, err)
	}
	if status != http.StatusOK {
		return fmt.Errorf("GET %s: %d %s", path, status, bytes.TrimSpace(answer))
	}
	if err := json.Unmarshal(answer, out); err != nil {
		return fmt.Errorf("GET %s: decode %s: %w", path, answer, err)
	}
	return nil
}

// ObjectPath is the path of one object, for example of kind "router".
func ObjectPath(kind, key string) string {
	return NetworkingPath + "/" + kind + "/" + url.PathEscape(key)
}

// Flow is a rule as /kvnet/v1/flows shows it.
type Flow struct {
	Switch string `json:"switch"`
	Owner  string `json:"owner"`
	Rule   string `json:"rule"`
	State  string `json:"state"`
	Reason string `json:"reason"`
}

// Waiting is an owner that lacks something, as /kvnet/v1/flows shows it.
type Waiting struct {
	Owner string `json:"owner"`
	For   string `json:"for"`
}

// Flows reads the rules of a switch and an owner; empty texts mean all.
func (s *Server) Flows(ctx context.Context, switchID, owner string) ([]Flow, []Waiting, error) {
	query := url.Values{}
	if switchID != "" {
		query.Set("switch", switchID)
	}
	if owner != "" {
		query.Set("owner", owner)
	}
	var answer struct {
		Flows   []Flow    `json:"flows"`
		Waiting []Waiting `json:"waiting"`
	}
	err := s.Read(ctx, "/kvnet/v1/flows?"+query.Encode(), &answer)
	return answer.Flows, answer.Waiting, err
}

// NodeState reads the state of a node.
func (s *Server) NodeState(ctx context.Context, hostname string) (string, error) {
	var node struct {
		State string `json:"state"`
	}
	err := s.Read(ctx, NodePath+"/"+url.PathEscape(hostname), &node)
	return node.State, err
}

// Router is what the tests look at in a router.
type Router struct {
	Name    string `json:"name"`
	Gateway string `json:"gateway"`
	Peer    struct {
		IP  string `json:"ip"`
		MAC string `json:"mac"`
	} `json:"peerRouter"`
}

// Router reads a router.
func (s *Server) Router(ctx context.Context, name string) (Router, error) {
	var r Router
	err := s.Read(ctx, ObjectPath("router", name), &r)
	return r, err
}

// Metric reads a metric without labels; ok is false if there is none.
func (s *Server) Metric(ctx context.Context, name string) (value float64, ok bool, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.Metrics+"/metrics", nil)
	if err != nil {
		return 0, false, fmt.Errorf("make request: %w", err)
	}
	response, err := s.client.Do(request)
	if err != nil {
		return 0, false, fmt.Errorf("read metrics: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, false, fmt.Errorf("read metrics: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		rest, found := strings.CutPrefix(strings.TrimSpace(line), name+" ")
		if !found {
			continue
		}
		value, err = strconv.ParseFloat(rest, 64)
		return value, err == nil, err
	}
	return 0, false, nil
}
