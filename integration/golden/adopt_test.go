package golden

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"kvnet/integration/harness"
	"kvnet/integration/ovs"
	"kvnet/integration/server"
	"kvnet/model"
	"kvnet/southbound/flow"
)

// onosCookies are those of ONOS's rules in these tests: the id of the application in
// the upper 16 bits.
const (
	onosApplication = 0x00b5
	onosCookies     = "0x00b5000000000000/0xffff000000000000"
)

// Switches that hold what ONOS held after a step are left alone until they are
// adopted; then they hold what kvnet wants after the same steps, and nothing of
// ONOS's.
func TestAdoptedSwitchesHoldNothingOfONOS(t *testing.T) {
	harness.NeedRoot(t)
	for _, c := range []struct {
		folder string
		step   int // the last one that is done; 0: the last but one
	}{
		{"01-lb-flat", 30}, {"02-lb-vlan", 36}, {"03-lb-vxlan", 36}, {"07-snat-flat", 36}, {"10-snat-vxlan", 36},
		{"36-lb-empty-vxlan", 18}, {"39-lb-protocols", 0}, {"15-gateways-flat", 0},
	} {
		t.Run(c.folder, func(t *testing.T) {
			t.Parallel()
			s, err := Load(filepath.Join("testdata/scenarios", c.folder))
			if err != nil {
				t.Fatal(err)
			}
			if c.step == 0 {
				c.step = len(s.Steps) - 1
			}
			newReplay(t, s).adopt(harness.Context(t, 5*time.Minute), c.step)
		})
	}
}

func (r *replay) adopt(ctx context.Context, last int) {
	held := r.Expected[last]
	for i, step := range r.Steps[:last] {
		var err error
		if step.Op == "addDevice" {
			err = r.addLoaded(ctx, step, held)
		} else {
			err = r.perform(ctx, step, r.refusal(i+1))
		}
		if err != nil {
			r.t.Fatalf("step %d %s: %v", i+1, step.Op, err)
		}
	}
	before, err := r.state(ctx)
	if err != nil {
		r.t.Fatal(err)
	}
	if len(held) == 0 {
		r.t.Fatal("nothing is recorded after this step")
	}
	for id, rules := range held {
		if len(before[id]) != len(rules) {
			r.t.Errorf("%s holds %d rules and groups, want the %d recorded ones", id, len(before[id]), len(rules))
		}
	}
	if out, err := r.kvnetAdopt(ctx); err != nil || !strings.Contains(out, "dry run") {
		r.t.Errorf("dry run: %v\n%s", err, out)
	}
	if after, err := r.state(ctx); err != nil || fmt.Sprint(after) != fmt.Sprint(before) {
		r.t.Errorf("the dry run has changed something, %v: %v, before %v", err, after, before)
	}
	out, err := r.kvnetAdopt(ctx, "--yes")
	if err != nil {
		r.t.Errorf("adopt: %v\n%s", err, out)
	}
	r.expectNothingOfONOS(ctx, out)
	if r.uncompared(last) {
		return
	}
	want, err := r.apply(last)
	if err == nil {
		want, err = r.rewrite(want)
	}
	if err == nil {
		err = r.await(ctx, last, want)
	}
	if err != nil {
		r.t.Errorf("after the adoption: %v\n%s", err, out)
	}
}

// addLoaded adds the bridge of a device with what it held, before it may connect.
func (r *replay) addLoaded(ctx context.Context, step Step, held State) error {
	id, err := model.ParseDPID(step.ID)
	if err != nil {
		return err
	}
	return r.addThen(ctx, id, step.Ports, func(b bridge) error { return r.load(ctx, b, held[id]) })
}

// firstGroup is the first id of the groups that stand for ONOS's.
const firstGroup = 0x51d0_0000

// load gives a bridge recorded groups and rules, with ONOS's cookies.
func (r *replay) load(ctx context.Context, b bridge, held []ovs.Flow) error {
	ids := map[string]string{}
	for _, f := range held {
		if f.Table != groupTable {
			continue
		}
		name := strings.TrimPrefix(f.Match[0], "group=")
		ids[name] = fmt.Sprint(firstGroup + len(ids))
		kind, buckets, _ := strings.Cut(f.Actions, ": ")
		text := "group_id=" + ids[name] + ",type=" + kind
		for actions := range strings.SplitSeq(buckets, " | ") {
			if actions != "" {
				text += ",bucket=actions=" + actions
			}
		}
		if _, err := b.Ofctl(ctx, nil, "add-group", b.name, text); err != nil {
			return err
		}
	}
	var rules strings.Builder
	for i, f := range held {
		if f.Table == groupTable {
			continue
		}
		f.Actions = toGroup.ReplaceAllStringFunc(f.Actions, func(g string) string { return "group:" + ids[strings.TrimPrefix(g, "group:")] })
		fmt.Fprintf(&rules, "cookie=0x%x,%s\n", uint64(onosApplication)<<48|uint64(0x9e3779b9*uint32(i+1)), f)
	}
	file := filepath.Join(r.lab.Dir, b.name+".rules")
	if err := os.WriteFile(file, []byte(rules.String()), 0o600); err != nil {
		return err
	}
	_, err := b.Ofctl(ctx, nil, "add-flows", b.name, file)
	return err
}

// toGroup matches an action that leads to a recorded group.
var toGroup = regexp.MustCompile(`group:G\([^)]*\)`)

// kvnetAdopt calls the command.
func (r *replay) kvnetAdopt(ctx context.Context, args ...string) (string, error) {
	binary, err := server.Binary()
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, binary, append([]string{"adopt", "--cookie", onosCookies, "--url", "http://" + r.server.REST}, args...)...)
	cmd.Env = append(os.Environ(), "KVNET_PASSWORD=rocks")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (r *replay) expectNothingOfONOS(ctx context.Context, said string) {
	for id, b := range r.bridges {
		rules, err := b.Flows(ctx, b.name)
		if err != nil {
			r.t.Fatal(err)
		}
		for _, f := range rules {
			if f.Cookie>>48 == onosApplication {
				r.t.Errorf("%s still holds a rule of ONOS: %s\n%s", id, f, said)
			}
		}
		groups, err := b.Groups(ctx, b.name)
		if err != nil {
			r.t.Fatal(err)
		}
		for _, g := range groups {
			if n, err := strconv.ParseUint(g.ID, 10, 32); err != nil || n < uint64(flow.GroupIDMin) {
				r.t.Errorf("%s still holds a group of ONOS: %+v\n%s", id, g, said)
			}
		}
	}
}
