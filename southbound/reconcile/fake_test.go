package reconcile

import (
	"context"

	"kvnet/model"
	"kvnet/southbound/openflow"
)

// fake is a session whose answers a test gives itself.
type fake struct {
	dpid   model.DPID
	bundle func(context.Context, []openflow.Message) error
	flows  func(context.Context, openflow.FlowQuery) ([]openflow.FlowEntry, error)
	closed func()
}

func newFake(d model.DPID) *fake {
	return &fake{
		dpid:   d,
		bundle: func(context.Context, []openflow.Message) error { return nil },
		flows:  func(context.Context, openflow.FlowQuery) ([]openflow.FlowEntry, error) { return nil, nil },
		closed: func() {},
	}
}

func (f *fake) DPID() model.DPID                                       { return f.dpid }
func (f *fake) Bundle(ctx context.Context, m []openflow.Message) error { return f.bundle(ctx, m) }
func (f *fake) Send(context.Context, openflow.Message) error           { return nil }
func (f *fake) Groups(context.Context) ([]openflow.GroupEntry, error)  { return nil, nil }
func (f *fake) Close(string)                                           { f.closed() }
func (f *fake) Flows(ctx context.Context, q openflow.FlowQuery) ([]openflow.FlowEntry, error) {
	return f.flows(ctx, q)
}
