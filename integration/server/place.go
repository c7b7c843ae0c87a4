package server

import (
	"context"
	"net"
	"time"
)

// dialThere connects from the server's own namespace.
func (s *Server) dialThere(ctx context.Context, network, address string) (conn net.Conn, err error) {
	err = s.NS.Do(func() (err error) {
		conn, err = (&net.Dialer{}).DialContext(ctx, network, address)
		return err
	})
	return conn, err
}

// DialOpenFlow connects to the server as a switch would, from its own namespace if
// it has one.
func (s *Server) DialOpenFlow() (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if s.NS == nil {
		return (&net.Dialer{}).DialContext(ctx, "tcp", s.OpenFlow)
	}
	return s.dialThere(ctx, "tcp", s.OpenFlow)
}
