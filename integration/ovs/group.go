package ovs

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Group is a group as ovs-ofctl prints it. Like Flow it isn't read by kvnet's own
// parser.
type Group struct {
	ID      string // as it stands there
	Type    string
	Buckets []string // what each does, sorted
}

// ParseGroup reads a line of ovs-ofctl dump-groups. The ids of buckets and the
// weight 1 are left out.
func ParseGroup(line string) (Group, error) {
	parts := strings.Split(strings.TrimSpace(line), ",bucket=")
	var g Group
	for word := range strings.SplitSeq(parts[0], ",") {
		name, value, _ := strings.Cut(word, "=")
		switch name {
		case "group_id":
			g.ID = value
		case "type":
			g.Type = value
		default:
			return g, fmt.Errorf("group %q: %q is not known", line, word)
		}
	}
	if g.ID == "" || g.Type == "" {
		return g, fmt.Errorf("group without id or type: %q", line)
	}
	for _, b := range parts[1:] {
		before, actions, ok := strings.Cut(b, "actions=")
		if !ok {
			return g, fmt.Errorf("bucket without actions: %q", line)
		}
		for word := range strings.SplitSeq(before, ",") {
			if word != "" && word != "weight:1" && !strings.HasPrefix(word, "bucket_id:") {
				actions = word + "," + actions
			}
		}
		g.Buckets = append(g.Buckets, actions)
	}
	slices.Sort(g.Buckets)
	return g, nil
}

// Groups returns the groups of a bridge.
func (i *Instance) Groups(ctx context.Context, bridge string) ([]Group, error) {
	out, err := i.Ofctl(ctx, nil, "dump-groups", bridge)
	if err != nil {
		return nil, err
	}
	var groups []Group
	for _, line := range contentLines(out) {
		g, err := ParseGroup(line)
		if err != nil {
			return nil, err
		}
		groups = append(groups, g)
	}
	return groups, nil
}

var (
	bucketPackets = regexp.MustCompile(`bucket\d+:packet_count=(\d+)`)
	newAddress    = regexp.MustCompile(`set_field:([0-9.]+)->ip_dst`)
)

// BucketPackets are the packets that each bucket of a group has sent, in the
// group's order.
func (i *Instance) BucketPackets(ctx context.Context, bridge, group string) ([]uint64, error) {
	out, err := i.Ofctl(ctx, nil, "dump-group-stats", bridge, "group_id="+group)
	if err != nil {
		return nil, err
	}
	var counts []uint64
	for _, m := range bucketPackets.FindAllStringSubmatch(out, -1) {
		n, err := strconv.ParseUint(m[1], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("group statistics %q: %w", out, err)
		}
		counts = append(counts, n)
	}
	return counts, nil
}

// Targets are the IPv4 addresses that the buckets write into packets, sorted as
// texts.
func (g Group) Targets() []string {
	var targets []string
	for _, b := range g.Buckets {
		for _, m := range newAddress.FindAllStringSubmatch(b, -1) {
			targets = append(targets, m[1])
		}
	}
	slices.Sort(targets)
	return targets
}
