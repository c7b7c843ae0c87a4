package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"kvnet/integration/lab"
)

// Bench measures and prints.
type Bench struct {
	Out    io.Writer
	Binary string // of kvnet
	// Child makes a command that runs this program again and has it print what it
	// measures as JSON, by RunChild with these arguments.
	Child func(ctx context.Context, args ...string) *exec.Cmd
}

// Parts names the figures, in the order in which they are measured.
const Parts = "abcdefghij"

// Run measures the parts of which the letters are in parts.
func (b *Bench) Run(ctx context.Context, parts string) error {
	wants := func(letters string) bool { return strings.ContainsAny(parts, letters) }
	root := os.Geteuid() == 0
	if !root && wants("abg") {
		fmt.Fprintln(b.Out, "(a), (b) and (g) need real switches in network namespaces, which need root: they are left out.")
	}
	type step struct {
		wanted bool
		run    func(context.Context) ([]figure, error)
	}
	for _, s := range []step{
		{wants("a") && root, b.rules},
		{wants("bg") && root, func(ctx context.Context) ([]figure, error) { return b.inWorld(ctx, wants("b"), wants("g")) }},
		{wants("c"), func(ctx context.Context) ([]figure, error) { return one(b.measurePosts(ctx)) }},
		{wants("de"), b.measureStart},
		{wants("e"), func(ctx context.Context) ([]figure, error) { return one(b.memory(ctx)) }},
		{wants("f"), func(ctx context.Context) ([]figure, error) { return one(b.portChange(ctx)) }},
		{wants("hij"), func(ctx context.Context) ([]figure, error) {
			return b.measureREST(ctx, wants("h"), wants("i"), wants("j"))
		}},
	} {
		if !s.wanted {
			continue
		}
		figures, err := s.run(ctx)
		for _, f := range figures {
			f.print(b.Out)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func one(f figure, err error) ([]figure, error) {
	if err != nil {
		return nil, err
	}
	return []figure{f}, nil
}

func (b *Bench) rules(ctx context.Context) (fs []figure, err error) {
	tun, err := measureRules(ctx, gatewayTun, "rules of "+lab.BrTun)
	if err != nil {
		return nil, err
	}
	integration, err := measureRules(ctx, gatewayInt, "rules of "+lab.BrInt)
	return []figure{tun, integration}, err
}

func (b *Bench) inWorld(ctx context.Context, balancer, failOver bool) (fs []figure, err error) {
	w, err := b.newWorld(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	if balancer {
		f, err := w.measureBalancer(ctx)
		if err != nil {
			return fs, err
		}
		fs = append(fs, f)
	}
	if failOver {
		f, err := w.measureFailOver(ctx)
		if err != nil {
			return fs, err
		}
		fs = append(fs, f)
	}
	return fs, nil
}

func (b *Bench) memory(ctx context.Context) (figure, error) {
	var m Memory
	if err := b.child(ctx, &m, "memory"); err != nil {
		return figure{}, err
	}
	return figure{part: "e", ratio: fmt.Sprintf("%.2f KiB of resident memory a rule at %d rules of br-tun (goal 1 KB)", float64(m.RSSRule)/1024, m.Rules),
		details: []string{
			fmt.Sprintf("resident %d bytes a rule once unused memory is given back, %d before that; heap %d", m.RSSRule, m.RSSRuleAsIs, m.HeapRule),
			fmt.Sprintf("beside them the state: heap %d bytes a port", m.HeapPort),
		}}, nil
}

// portChange measures few ports and many in turn, each in a process of its own,
// and takes the better run of each.
func (b *Bench) portChange(ctx context.Context) (figure, error) {
	best := map[int]times{}
	for range 3 {
		for _, ports := range []int{fewPorts, manyPorts} {
			var t times
			if err := b.child(ctx, &t, "port-change", fmt.Sprint(ports)); err != nil {
				return figure{}, err
			}
			if best[ports] == nil || t.median() < best[ports].median() {
				best[ports] = t
			}
		}
	}
	few, many := best[fewPorts], best[manyPorts]
	return figure{part: "f", ratio: fmt.Sprintf("one port change takes %.2f times as long with %d ports as with %d (p50, goal 1.2)", over(many.median(), few.median()), manyPorts, fewPorts),
		details: []string{
			fmt.Sprintf("change of the state to rule sent, %d ports: %s", fewPorts, few.percentiles()),
			fmt.Sprintf("change of the state to rule sent, %d ports: %s", manyPorts, many.percentiles()),
		}}, nil
}

func (b *Bench) child(ctx context.Context, into any, args ...string) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	cmd := b.Child(ctx, args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("measure %s in a process of its own: %w", strings.Join(args, " "), err)
	}
	if err := json.Unmarshal(out, into); err != nil {
		return fmt.Errorf("measure %s in a process of its own: read the result: %w", strings.Join(args, " "), err)
	}
	return nil
}

// RunChild measures one thing in a fresh process and writes it as JSON.
func RunChild(ctx context.Context, out io.Writer, args []string) error {
	var result any
	var err error
	switch {
	case len(args) == 1 && args[0] == "trivial":
		return serveTrivial(os.Stdin, out)
	case len(args) == 1 && args[0] == "memory":
		result, err = MeasureMemory(ctx)
	case len(args) == 2 && args[0] == "port-change":
		var ports int
		if _, err := fmt.Sscan(args[1], &ports); err != nil {
			return fmt.Errorf("number of ports %q: %w", args[1], err)
		}
		result, err = PortChanges(ctx, ports)
	default:
		return fmt.Errorf("nothing is measured by %q", args)
	}
	if err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(result)
}
