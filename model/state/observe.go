package state

import (
	"time"

	"github.com/cilium/statedb"

	"kvnet/model"
)

// Observer takes in what southbound sees. DB implements it.
type Observer interface {
	// SwitchConnected says that a switch is ready: ports are all its ports.
	SwitchConnected(sw model.Switch, ports []model.SwitchPort)
	// SwitchChanged changes what is known of a switch: role, generation, error.
	// It does nothing for a switch that was never connected.
	SwitchChanged(d model.DPID, change func(*model.Switch))
	// SwitchPortChanged says that a port was added or changed.
	SwitchPortChanged(p model.SwitchPort)
	// SwitchPortRemoved says that a port is gone.
	SwitchPortRemoved(d model.DPID, name string, number uint32)
	// SwitchDisconnected says that the connection of a switch is lost. What is
	// known of its ports goes with it.
	SwitchDisconnected(d model.DPID, reason string)
}

var _ Observer = (*DB)(nil)

var observedKinds = []model.Kind{model.KindSwitch, model.KindSwitchPort}

// observe runs f; tables of observed objects can't fail to take them.
func (d *DB) observe(f func(txn statedb.WriteTxn, ch *[]model.Change) error) {
	if err := d.write(observedKinds, f, nil); err != nil {
		panic("model/state: " + err.Error())
	}
}

// SwitchConnected implements Observer.
func (d *DB) SwitchConnected(sw model.Switch, ports []model.SwitchPort) {
	d.observe(func(txn statedb.WriteTxn, ch *[]model.Change) error {
		if err := d.dropPorts(txn, sw.DPID, ch); err != nil {
			return err
		}
		sw.Connected = true
		if err := d.apply(txn, Event{model.KindSwitch, sw.Key(), &sw}, ch); err != nil {
			return err
		}
		for i := range ports {
			p := ports[i]
			if err := d.apply(txn, Event{model.KindSwitchPort, p.Key(), &p}, ch); err != nil {
				return err
			}
		}
		return nil
	})
}

// SwitchChanged implements Observer.
func (d *DB) SwitchChanged(id model.DPID, change func(*model.Switch)) {
	d.observe(func(txn statedb.WriteTxn, ch *[]model.Change) error {
		old, ok := d.t.switches.get(txn, id.String())
		if !ok {
			return nil
		}
		next := *old
		change(&next)
		if next == *old {
			return nil
		}
		return d.apply(txn, Event{model.KindSwitch, next.Key(), &next}, ch)
	})
}

// SwitchPortChanged implements Observer.
func (d *DB) SwitchPortChanged(p model.SwitchPort) {
	d.observe(func(txn statedb.WriteTxn, ch *[]model.Change) error {
		if old, ok := d.t.switchPorts.get(txn, p.Key()); ok && *old == p {
			return nil
		}
		return d.apply(txn, Event{model.KindSwitchPort, p.Key(), &p}, ch)
	})
}

// SwitchPortRemoved implements Observer. A port of that name that has another
// number by now stays.
func (d *DB) SwitchPortRemoved(id model.DPID, name string, number uint32) {
	d.observe(func(txn statedb.WriteTxn, ch *[]model.Change) error {
		p := model.SwitchPort{DPID: id, Name: name}
		if old, ok := d.t.switchPorts.get(txn, p.Key()); !ok || old.Number != number {
			return nil
		}
		return d.apply(txn, Event{Kind: model.KindSwitchPort, Key: p.Key()}, ch)
	})
}

// SwitchDisconnected implements Observer.
func (d *DB) SwitchDisconnected(id model.DPID, reason string) {
	d.observe(func(txn statedb.WriteTxn, ch *[]model.Change) error {
		old, ok := d.t.switches.get(txn, id.String())
		if !ok || !old.Connected {
			return nil
		}
		next := *old
		next.Connected, next.Role, next.LastError, next.Since = false, model.RoleEqual, reason, time.Now()
		if err := d.apply(txn, Event{model.KindSwitch, next.Key(), &next}, ch); err != nil {
			return err
		}
		return d.dropPorts(txn, id, ch)
	})
}

func (d *DB) dropPorts(txn statedb.WriteTxn, id model.DPID, ch *[]model.Change) error {
	var names []string
	for p := range d.t.switchPorts.List(txn, switchPortBySwitch.Query(id.String())) {
		names = append(names, p.Key())
	}
	for _, k := range names {
		if err := d.apply(txn, Event{Kind: model.KindSwitchPort, Key: k}, ch); err != nil {
			return err
		}
	}
	return nil
}
