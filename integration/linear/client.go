package linear

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"

	"kvnet/integration/server"
)

// Server is a server that takes requests, as *server.Server does.
type Server interface {
	Do(ctx context.Context, method, path string, body any) (status int, answer []byte, err error)
}

// Client sends requests and records them.
type Client struct {
	Number  int
	History *History
}

// Do sends one request to a server, waits for the answer until ctx ends, and records
// both. The error is about an answer that no fault explains.
func (c Client) Do(ctx context.Context, s Server, in Input) (Output, error) {
	method, path, body := request(c.Number, in)
	id := c.History.Begin(c.Number, in)
	status, answer, err := s.Do(ctx, method, path, body)
	out, err := learn(in, status, answer, err)
	c.History.End(id, out)
	if err != nil {
		return out, fmt.Errorf("%s %s: %w", method, path, err)
	}
	return out, nil
}

// consistently asks for a read that contains all that was acknowledged before.
const consistently = "?consistent=true"

// ReadAll asks a server for all routers at once, until ctx ends, and records a
// consistent read of each key.
func (c Client) ReadAll(ctx context.Context, s Server, keys []string) error {
	call := c.History.Now()
	status, answer, err := s.Do(ctx, http.MethodGet, server.NetworkingPath+"/router"+consistently, nil)
	if err != nil {
		return fmt.Errorf("read all routers: %w", err)
	}
	if status != http.StatusOK {
		return fmt.Errorf("read all routers: %d %s", status, bytes.TrimSpace(answer))
	}
	ret := c.History.Now()
	var all struct {
		Routers []struct{ Name, Description string } `json:"routers"`
	}
	if err := json.Unmarshal(answer, &all); err != nil || all.Routers == nil {
		return fmt.Errorf("read all routers: the answer is no list of routers: %.200s (%w)", answer, err)
	}
	values := map[string]string{}
	for _, r := range all.Routers {
		values[r.Name] = r.Description
	}
	for _, key := range keys {
		c.History.Record(c.Number, Input{Kind: Read, Key: key, Consistent: true}, Output{Outcome: Done, Value: values[key]}, call, ret)
	}
	return nil
}

func request(client int, in Input) (method, path string, body any) {
	path = server.ObjectPath("router", in.Key)
	switch in.Kind {
	case Read:
		if in.Consistent {
			path += consistently
		}
		return http.MethodGet, path, nil
	case Delete:
		return http.MethodDelete, path, nil
	}
	body = map[string]any{"name": in.Key, "mac": fmt.Sprintf("fa:00:00:00:01:%02x", client), "description": in.Value}
	if in.Kind == Create {
		return http.MethodPost, server.NetworkingPath + "/router", body
	}
	return http.MethodPut, path, body
}

// learn is what an answer says. A client that can't even connect has asked for
// nothing; any other silence, and any fault of the server, leaves a write open.
func learn(in Input, status int, answer []byte, err error) (Output, error) {
	var op *net.OpError
	switch {
	case errors.As(err, &op) && op.Op == "dial":
		return Output{Outcome: Void}, nil
	case err != nil, status >= 500:
		return Output{Outcome: Unknown}, nil //nolint:nilerr // silence is an outcome, not an error
	case in.Kind == Read && status == http.StatusOK:
		var router struct {
			Description string `json:"description"`
		}
		if err := json.Unmarshal(answer, &router); err != nil || router.Description == "" {
			return Output{Outcome: Void}, fmt.Errorf("the answer is no router with a description: %s", answer)
		}
		return Output{Outcome: Done, Value: router.Description}, nil
	case in.Kind == Read && status == http.StatusNotFound:
		return Output{Outcome: Done}, nil
	case in.Kind != Read && status == map[Kind]int{Create: http.StatusCreated, Update: http.StatusOK, Delete: http.StatusNoContent}[in.Kind]:
		return Output{Outcome: Done}, nil
	case in.Kind == Create && status == http.StatusConflict && bytes.Contains(answer, []byte("already exists")),
		(in.Kind == Update || in.Kind == Delete) && status == http.StatusNotFound:
		return Output{Outcome: Refused}, nil
	case in.Kind != Read && status == http.StatusConflict: // with others; nothing was stored
		return Output{Outcome: Void}, nil
	}
	return Output{Outcome: Unknown}, fmt.Errorf("unexpected answer: %d %s", status, bytes.TrimSpace(answer))
}
