package leader

import (
	"kvnet/cluster/store"
	"kvnet/model"
)

// tell logs what operators look for: nodes that come and go, and routers that
// move.
func (d *Decider) tell(ds []store.Decision) {
	for _, x := range ds {
		switch now := x.New.(type) {
		case *model.NodeStatus:
			if old, ok := x.Old.(*model.NodeStatus); !ok || old.State != now.State {
				d.c.Logger.Info("node changed its state", "node", now.Hostname, "state", now.State)
			}
		case *model.RouterStatus:
			old, _ := x.Old.(*model.RouterStatus)
			if old == nil && now.Gateway != "" || old != nil && old.Gateway != now.Gateway {
				d.c.Logger.Info("router has another gateway", "router", now.Name, "gateway", now.Gateway)
			}
		}
	}
}
