package reconcile

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"kvnet/model/state"
	"kvnet/southbound/flow"
	"kvnet/southbound/openflow"
	"kvnet/southbound/openflow/oftest"
)

// planter is a controller that only hands out its session.
type planter struct{ up chan *openflow.Session }

func (p planter) MasterUp(s *openflow.Session) {
	select {
	case p.up <- s:
	default:
	}
}
func (planter) SessionDown(*openflow.Session, error)                {}
func (planter) PacketIn(*openflow.Session, openflow.PacketIn)       {}
func (planter) FlowRemoved(*openflow.Session, openflow.FlowRemoved) {}
func (planter) Stale(*openflow.Session, uint64)                     {}

// plant puts a rule with a cookie on a switch, as another controller would,
// before the switch knows any generation.
func plant(t *testing.T, s *oftest.Switch, cookie uint64, r flow.Rule) {
	t.Helper()
	e, err := openflow.EncodeRule(r)
	if err != nil {
		t.Fatal(err)
	}
	plantMessages(t, s, []openflow.Message{openflow.AddFlow(e, cookie)})
}

// plantMessages has a switch carry out messages of another controller, before it
// knows any generation.
func plantMessages(t *testing.T, s *oftest.Switch, msgs []openflow.Message) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	up := make(chan *openflow.Session, 1)
	srv := openflow.NewServer(openflow.Config{Observer: state.New(), Events: planter{up}})
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { _ = srv.Serve(ctx, ln) })
	defer func() { s.Disconnect(); cancel(); wg.Wait() }()
	srv.SetRole(openflow.Role{Master: true})
	s.Connect(t, ln.Addr())
	select {
	case sess := <-up:
		if err := sess.Bundle(ctx, msgs); err != nil {
			t.Fatal(err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("switch did not connect")
	}
}

// differences is what the full recomputes have found.
func (w *world) differences() float64 { return testutil.ToFloat64(w.current().metrics.differences) }

func waves(w *world, result string) float64 {
	return testutil.ToFloat64(w.current().metrics.waves.WithLabelValues(result))
}
