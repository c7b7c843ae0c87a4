package reconcile

import "kvnet/southbound/flow"

// ports are the port numbers of a switch by name.
type ports map[string]uint32

// resolve fills in the number of a port; missing is its name if the switch has
// no such port.
func (p ports) resolve(x flow.Port) (y flow.Port, missing string) {
	if x.Name == "" {
		return x, ""
	}
	n, ok := p[x.Name]
	if !ok {
		return x, x.Name
	}
	return flow.NumberedPort(n), ""
}

// actions fills in the port numbers of actions. It returns the given slice if
// there is nothing to fill in.
func (p ports) actions(in []flow.Action) (out []flow.Action, missing string) {
	out = in
	for i, a := range in {
		o, ok := a.(flow.Output)
		if !ok || o.Port.Name == "" {
			continue
		}
		if o.Port, missing = p.resolve(o.Port); missing != "" {
			return nil, missing
		}
		if &out[0] == &in[0] {
			out = append([]flow.Action(nil), in...)
		}
		out[i] = o
	}
	return out, ""
}

// match fills in the port number of a match.
func (p ports) match(in flow.Match) (out flow.Match, missing string) {
	out = in
	out.InPort, missing = p.resolve(in.InPort)
	return out, missing
}

// group fills in the port numbers of a group's buckets.
func (p ports) group(in flow.Group) (out flow.Group, missing string) {
	out = in
	out.Buckets = make([]flow.Bucket, len(in.Buckets))
	for i, b := range in.Buckets {
		if b.Actions, missing = p.actions(b.Actions); missing != "" {
			return flow.Group{}, missing
		}
		out.Buckets[i] = b
	}
	return out, ""
}
