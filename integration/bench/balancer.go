package bench

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/http"
	"time"

	"kvnet/integration/lab"
	"kvnet/integration/relay"
	"kvnet/integration/server"
)

const (
	balancerChanges = 1000
	// warmUp are changes that are not counted.
	warmUp = 50
)

// balancer is the body of a balancer with that many members.
func balancer(n int) map[string]any {
	var ips []string
	for i := range n {
		ips = append(ips, memberIP(i))
	}
	return map[string]any{
		"name": "lb1", "description": "bench", "vip": "192.168.10.100", "networkId": "flat1", "members": ips,
		"rules": []map[string]any{{"protocol": "TCP", "portRangeMin": 80, "portRangeMax": 80}},
	}
}

// commitReplyOf recognises a switch's answer to the commit of a bundle (ONF
// extension 230: experimenter message 2300, type 5).
func commitReplyOf(switchName string) func(relay.Frame) bool {
	const onf, bundleControl, commitReply = 0x4f4e4600, 2300, 5
	return func(f relay.Frame) bool {
		b := f.Bytes
		return f.Direction == relay.ToServer && f.Switch == switchName && f.Type == relay.Experimenter && len(b) >= 22 &&
			binary.BigEndian.Uint32(b[8:]) == onf && binary.BigEndian.Uint32(b[12:]) == bundleControl &&
			binary.BigEndian.Uint16(b[20:]) == commitReply
	}
}

// measureBalancer changes the members of a balancer again and again and compares
// the time of the REST answer with that at which the commit reply of the gateway
// comes by.
func (w *world) measureBalancer(ctx context.Context) (f figure, err error) {
	first := w.relay.Mark()
	if err := w.server.Write(ctx, http.MethodPost, server.NetworkingPath+"/loadbalancer", balancer(1)); err != nil {
		return f, err
	}
	if _, err := w.commitReply(ctx, first); err != nil {
		return f, fmt.Errorf("create the balancer: %w", err)
	}
	var late, answers, whole times
	for n := range warmUp + balancerChanges {
		// A bundle of the change before may still be under way.
		if err := w.settled(ctx); err != nil {
			return f, err
		}
		mark, asked := w.relay.Mark(), time.Now()
		if err := w.server.Write(ctx, http.MethodPut, server.ObjectPath("loadbalancer", "lb1"), balancer(2+n%(members-1))); err != nil {
			return f, err
		}
		answered := time.Now()
		committed, err := w.commitReply(ctx, mark)
		if err != nil {
			return f, fmt.Errorf("change %d of the balancer: %w", n, err)
		}
		if n < warmUp {
			continue
		}
		late, answers, whole = append(late, committed.Sub(answered)), append(answers, answered.Sub(asked)), append(whole, committed.Sub(asked))
	}
	return figure{part: "b", ratio: fmt.Sprintf("a balancer's change is in force %.2f times the time of the REST answer after the request (p50)", over(whole.median(), answers.median())),
		details: []string{
			fmt.Sprintf("REST answer to commit reply: %s (goal p50 1ms, p99 5ms); less than 0: the switch was first", late.percentiles()),
			"request to REST answer: " + answers.percentiles(),
			"request to commit reply: " + whole.percentiles(),
		}}, nil
}

// commitReply waits for the first commit reply of the first gateway after a mark.
func (w *world) commitReply(ctx context.Context, m relay.Mark) (time.Time, error) {
	deadline := time.Now().Add(10 * time.Second)
	for time.Now().Before(deadline) {
		if replies := w.relay.Since(m, commitReplyOf(lab.Gateway+"/"+lab.BrInt)); len(replies) > 0 {
			return replies[0].Time, nil
		}
		if err := pause(ctx, 200*time.Microsecond); err != nil {
			return time.Time{}, err
		}
	}
	return time.Time{}, errors.New("no commit reply in time")
}

// settled waits until no bundle has come by for a moment.
func (w *world) settled(ctx context.Context) error {
	for {
		m := w.relay.Mark()
		if err := pause(ctx, 3*time.Millisecond); err != nil {
			return err
		}
		if len(w.relay.Since(m, nil)) == 0 {
			return nil
		}
	}
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
