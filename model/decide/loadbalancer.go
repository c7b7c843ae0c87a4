package decide

import (
	"kvnet/model"
	"kvnet/model/state"
)

// LoadBalancer decides about a balancer: its group id, once for its life. It
// returns nil if no id is free.
func LoadBalancer(db state.Snapshot, l *model.LoadBalancer, groups Numbers) *model.LoadBalancerStatus {
	if old := db.LoadBalancerStatus(l.Name); old != nil {
		return old
	}
	id, ok := groups.Next()
	if !ok {
		return nil
	}
	return &model.LoadBalancerStatus{Name: l.Name, Life: l.Created, GroupID: id}
}
