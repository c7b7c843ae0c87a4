package linear

import (
	"context"
	"slices"
	"time"

	"kvnet/integration/cluster"
)

const (
	theLeader    = "kvnet's leader"
	storesLeader = "the store's leader"
	neither      = "neither"
)

// some are n servers by chance. The first is each of the two leaders in two cases of
// five: kvnet's own, and that of the store's members, which is another server most of
// the time and the one that could answer a consistent read with old things.
func (t *trouble) some(ctx context.Context, n int) []*cluster.Member {
	all := t.shuffle(t.Members)
	who := neither
	switch d := t.random.IntN(5); {
	case d < 2:
		who = t.first(ctx, all, "kvnet_store_leads", storesLeader)
	case d < 4:
		who = t.first(ctx, all, "kvnet_leading", theLeader)
	}
	t.victims[who]++
	return all[:n]
}

// first moves the server whose metric is 1 to the front, and says who that is.
func (t *trouble) first(ctx context.Context, all []*cluster.Member, metric, who string) string {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	for i, m := range all {
		if v, ok, err := m.Metric(ctx, metric); err == nil && ok && v == 1 {
			all[0], all[i] = all[i], all[0]
			return who
		}
	}
	return neither
}

func (t *trouble) shuffle(members []*cluster.Member) []*cluster.Member {
	all := slices.Clone(members)
	t.random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}
