package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"kvnet/integration/ovs"
	"kvnet/integration/server"
)

// lists are the paths whose answers tell all objects.
var lists = []string{
	server.NodePath, server.NetworkingPath + "/network", server.NetworkingPath + "/port", server.NetworkingPath + "/router",
	server.NetworkingPath + "/loadbalancer", server.NetworkingPath + "/floating-ip", server.NetworkingPath + "/security-group",
}

// Record is everything that a fault must leave as it is.
type Record struct {
	Time time.Time
	// Objects are the answers of REST by path, in canonical form. The elected
	// gateway and the state of nodes are among them.
	Objects map[string]string
	// Rules and Groups are those of each bridge that has a controller.
	Rules  map[string][]ovs.Flow
	Groups map[string][]ovs.Group
}

// Record looks at all, and asks m for the objects.
func (w *World) Record(ctx context.Context, m *Member) (Record, error) {
	r := Record{Time: time.Now(), Objects: map[string]string{}, Rules: map[string][]ovs.Flow{}, Groups: map[string][]ovs.Group{}}
	for _, path := range lists {
		text, err := objects(ctx, m, path)
		if err != nil {
			return r, err
		}
		r.Objects[path] = text
	}
	for _, b := range w.Controlled {
		var err error
		if r.Rules[b.Name()], err = w.Node(b.Node).Flows(ctx, b.Bridge); err != nil {
			return r, err
		}
		if r.Groups[b.Name()], err = w.Node(b.Node).Groups(ctx, b.Bridge); err != nil {
			return r, err
		}
	}
	return r, nil
}

// objects is a list as text that doesn't depend on the order of its items.
func objects(ctx context.Context, m *Member, path string) (string, error) {
	var lists map[string][]any
	if err := m.Read(ctx, path, &lists); err != nil {
		return "", fmt.Errorf("%s: %w", m.Name, err)
	}
	var items []string
	for _, list := range lists {
		for _, item := range list {
			text, err := json.Marshal(item)
			if err != nil {
				return "", fmt.Errorf("encode %s of %s: %w", path, m.Name, err)
			}
			items = append(items, string(text))
		}
	}
	slices.Sort(items)
	return fmt.Sprint(items), nil
}

// CompareObjects tells what m answers otherwise than recorded.
func (r Record) CompareObjects(ctx context.Context, m *Member) error {
	var errs []error
	for _, path := range lists {
		text, err := objects(ctx, m, path)
		if err == nil && text != r.Objects[path] {
			err = fmt.Errorf("%s: %s was\n%s\nis\n%s", m.Name, path, r.Objects[path], text)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// tolerance is by how much the clocks of the test and of a switch may disagree.
const tolerance = 200 * time.Millisecond

// Differences lists rules and groups that are not in both, and rules that were
// written anew in between: those are younger than they have to be. Rules on the
// nodes in rewritten may be of any age.
func (r Record) Differences(later Record, rewritten ...string) (out []string) {
	passed := later.Time.Sub(r.Time) - tolerance
	for _, bridge := range slices.Sorted(maps.Keys(r.Rules)) {
		node, _, _ := strings.Cut(bridge, "/")
		anyAge := slices.Contains(rewritten, node)
		now := map[string]ovs.Flow{}
		for _, f := range later.Rules[bridge] {
			now[f.String()] = f
		}
		for _, old := range r.Rules[bridge] {
			f, ok := now[old.String()]
			delete(now, old.String())
			switch {
			case !ok:
				out = append(out, bridge+": gone: "+old.String())
			case !anyAge && f.Duration < old.Duration+passed:
				out = append(out, fmt.Sprintf("%s: was %s old, is %s old %s later: %s", bridge, old.Duration, f.Duration, passed, old))
			}
		}
		for _, f := range now {
			out = append(out, bridge+": new: "+f.String())
		}
		before, after := fmt.Sprint(r.Groups[bridge]), fmt.Sprint(later.Groups[bridge])
		if before != after {
			out = append(out, fmt.Sprintf("%s: groups were %s, are %s", bridge, before, after))
		}
	}
	return out
}
