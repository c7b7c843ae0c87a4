package openflow

import (
	"context"
	"errors"
	"net"

	"kvnet/model"
	"kvnet/southbound/flow"
)

var errSoon = errors.New("not built yet")

type Server struct{}

func NewServer(c Config) *Server                                   { return &Server{} }
func (s *Server) Serve(ctx context.Context, ln net.Listener) error { return errSoon }
func (s *Server) SetRole(r Role)                                   {}
func (s *Server) Session(d model.DPID) *Session                    { return nil }
func (s *Server) Sessions() []*Session                             { return nil }

type Session struct{}

func (s *Session) DPID() model.DPID                                            { return 0 }
func (s *Session) RemoteAddr() string                                          { return "" }
func (s *Session) Role() (model.Role, uint64)                                  { return model.RoleEqual, 0 }
func (s *Session) Done() <-chan struct{}                                       { return nil }
func (s *Session) Bundle(ctx context.Context, msgs []Message) error            { return errSoon }
func (s *Session) Send(ctx context.Context, m Message) error                   { return errSoon }
func (s *Session) Barrier(ctx context.Context) error                           { return errSoon }
func (s *Session) Flows(ctx context.Context, q FlowQuery) ([]FlowEntry, error) { return nil, errSoon }
func (s *Session) Groups(ctx context.Context) ([]GroupEntry, error)            { return nil, errSoon }
func (s *Session) GroupStats(ctx context.Context) ([]GroupStats, error)        { return nil, errSoon }
func (s *Session) Close(reason string)                                         {}

func EncodeRule(r flow.Rule) (EncodedRule, error)             { return EncodedRule{}, errSoon }
func AddFlow(e EncodedRule, cookie uint64) Message            { return Message{} }
func DeleteFlows(table uint8, cookie, mask uint64) Message    { return Message{} }
func DeleteStrict(e EncodedRule) Message                      { return Message{} }
func AddGroup(g flow.Group) (Message, error)                  { return Message{}, errSoon }
func ModifyGroup(g flow.Group) (Message, error)               { return Message{}, errSoon }
func DeleteGroup(id uint32) Message                           { return Message{} }
func PacketOut(port flow.Port, frame []byte) (Message, error) { return Message{}, errSoon }
