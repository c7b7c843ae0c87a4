package linear

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"kvnet/integration/server"
)

// Server is a server that takes requests, as *server.Server does.
type Server interface {
	Do(ctx context.Context, method, path string, body any) (status int, answer []byte, err error)
}

// patience is how long a client waits for an answer.
const patience = 3 * time.Second

// Client sends requests and records them.
type Client struct {
	Number  int
	History *History
}

// Do sends one request to a server and records it. The error is about an answer that
// no fault explains.
func (c Client) Do(ctx context.Context, s Server, in Input) (Output, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
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

func request(client int, in Input) (method, path string, body any) {
	path = server.ObjectPath("router", in.Key)
	switch in.Kind {
	case Read:
		if in.Consistent {
			path += "?consistent=true"
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
		return Output{Outcome: Unknown}, nil
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
