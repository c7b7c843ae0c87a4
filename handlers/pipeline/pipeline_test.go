package pipeline_test

import (
	"slices"
	"testing"

	"kvnet/handlers/internal/handlertest"
	"kvnet/handlers/pipeline"
	"kvnet/model"
	"kvnet/southbound/flow"
)

const (
	gatewayLines = `
		a1 table=0,priority=0,actions=goto_table:31
		a1 table=31,priority=0,actions=goto_table:32
		a1 table=32,priority=0,actions=drop
		a1 table=80,priority=10000,actions=NORMAL`
	workerLines = `
		c1 table=0,priority=0,actions=goto_table:1
		c1 table=1,priority=0,actions=goto_table:5
		c1 table=5,priority=0,actions=goto_table:35
		c1 table=35,priority=0,actions=goto_table:40
		c1 table=35,priority=40000,arp,actions=goto_table:80
		c1 table=40,priority=0,actions=goto_table:80
		c1 table=44,priority=0,actions=goto_table:80
		c1 table=80,priority=10000,actions=NORMAL`
)

func TestBaseRulesFollowTheTypeOfTheNode(t *testing.T) {
	l := handlertest.New(t, pipeline.New())
	gw, worker := handlertest.Node(model.NodeGateway, "gw1", 1), handlertest.Node(model.NodeWorker, "w1", 1)
	l.Put(gw, worker, handlertest.Node(model.NodeMaster, "m1", 2), handlertest.Node(model.NodeOther, "o1", 3))
	l.Want("Flow-GW-1 to 4", "pipeline/gw1", gatewayLines)
	l.Want("Flow-W-1 to 6 and the access lists off", "pipeline/w1", workerLines)
	l.Want("a master has none", "pipeline/m1", "")
	l.Want("a node of another type has none", "pipeline/o1", "")

	changed := *worker
	changed.Type = model.NodeMaster
	l.Put(&changed)
	l.Want("another type", "pipeline/w1", "")
	l.Delete(model.KindNode, "gw1")
	l.Want("a node that is gone", "", "")
}

func TestP1AWorkerKeepsItsPipelineInEveryState(t *testing.T) {
	l := handlertest.New(t, pipeline.New())
	worker := handlertest.Node(model.NodeWorker, "w1", 1)
	l.Put(worker)
	for _, s := range []model.NodeState{model.NodeInit, model.NodeComplete, model.NodeIncomplete} {
		l.Put(&model.NodeStatus{Hostname: "w1", Life: worker.Created, State: s})
		l.Want(string(s), "pipeline/w1", workerLines)
	}
}

func TestPhysicalBridgesOfAGatewayForwardNormally(t *testing.T) {
	l := handlertest.New(t, pipeline.New())
	gw := handlertest.Node(model.NodeGateway, "gw1", 1)
	gw.PhysIntfs = []model.PhysicalIntf{
		{Network: "external", PhysBridge: "of:00000000000000e1"}, {Network: "flat1", PhysBridge: "of:00000000000000e2"},
		{Network: "again", PhysBridge: "of:00000000000000e2"}, {Network: "unnamed"},
		// A mistake must not turn br-int or br-tun into an ordinary switch.
		{Network: "mistaken", PhysBridge: gw.IntegrationBridge}, {Network: "mistaken", PhysBridge: gw.TunnelBridge},
	}
	worker := handlertest.Node(model.NodeWorker, "w1", 1)
	worker.PhysIntfs = []model.PhysicalIntf{{Network: "flat1", PhysBridge: "of:00000000000000e3"}}
	l.Put(gw, worker)
	l.Want("Flow-P", "pipeline/gw1", gatewayLines+`
		e1 table=0,priority=10000,actions=NORMAL
		e2 table=0,priority=10000,actions=NORMAL`)
	l.Want("a worker's physical bridge has no controller", "pipeline/w1", workerLines)
}

func TestANodeWhoseBridgeIsNoSwitchWaits(t *testing.T) {
	l := handlertest.New(t, pipeline.New())
	worker := handlertest.Node(model.NodeWorker, "w1", 1)
	worker.IntegrationBridge = "ovsdb:10.0.0.1"
	l.Put(worker)
	l.Want("no OpenFlow device", "", "waits for integration bridge of node w1")
}

func TestOwnersOfOthersHaveNoRules(t *testing.T) {
	l := handlertest.New(t)
	l.Put(handlertest.Node(model.NodeWorker, "w1", 1))
	for _, o := range []string{"pipeline", "pipeline/w2", "pipeline/w1/x", "snat/w1"} {
		set, waiting := pipeline.New().Rules(l.DB.Snapshot(), flow.Owner(o))
		if len(set.Rules) != 0 || len(waiting) != 0 {
			t.Errorf("%s has rules", o)
		}
	}
	if o := pipeline.New().Owners(l.DB.Snapshot()); !slices.Equal(o, pipeline.New().Affected(l.DB.Snapshot(), model.Change{Kind: model.KindNode, Key: "w1"})) {
		t.Errorf("owners %v", o)
	}
}
