package bench

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"kvnet/handlers"
	"kvnet/handlers/snat"
	"kvnet/model"
	"kvnet/model/state"
	"kvnet/southbound/flow"
)

// memoryRules is how many rules lie in memory.
const memoryRules = 100_000

// Memory is what a process needed, in bytes.
type Memory struct {
	Rules int
	// HeapPort is the heap for one port in the state, HeapRule that of the engine
	// for one rule that is installed.
	HeapPort, HeapRule int64
	// RSSRule is the growth of the resident memory by one rule after the unused
	// part was given back, RSSRuleAsIs the same before that.
	RSSRule, RSSRuleAsIs int64
}

// onlyOn computes the rules of another handler for one switch.
type onlyOn struct {
	handlers.Handler
	dpid model.DPID
}

func (h onlyOn) Rules(db state.Snapshot, o flow.Owner) (flow.Set, []handlers.Waiting) {
	all, waiting := h.Handler.Rules(db, o)
	var set flow.Set
	for _, r := range all.Rules {
		if r.Switch == h.dpid {
			set.Rules = append(set.Rules, r)
		}
	}
	return set, waiting
}

// MeasureMemory installs the rules that SNAT has on the gateway's br-tun, one for
// each port, and tells the memory that they take. The process must be a fresh one.
func MeasureMemory(ctx context.Context) (Memory, error) {
	empty, err := memoryNow()
	if err != nil {
		return Memory{}, err
	}
	db, err := newState(memoryRules)
	if err != nil {
		return Memory{}, err
	}
	before, err := memoryNow()
	if err != nil {
		return Memory{}, err
	}
	engine, stop := startEngine(db, []handlers.Handler{onlyOn{snat.New(), gatewayTun}})
	defer stop()
	var sent atomic.Int64
	done := make(chan time.Time, 1)
	engine.MasterUp(&agreeable{gatewayTun, func(n int, at time.Time) {
		if sent.Add(int64(n)) == memoryRules {
			done <- at
		}
	}})
	if _, err := await(ctx, done, 2*time.Minute); err != nil {
		return Memory{}, fmt.Errorf("install %d rules, %d sent: %w", memoryRules, sent.Load(), err)
	}
	// The engine still takes in that the last bundle was accepted.
	if err := silence(ctx, done); err != nil {
		return Memory{}, err
	}
	asIs, err := resident()
	if err != nil {
		return Memory{}, err
	}
	after, err := memoryNow()
	if err != nil {
		return Memory{}, err
	}
	runtime.KeepAlive(db)
	return Memory{
		Rules:    memoryRules,
		HeapPort: (before.heap - empty.heap) / memoryRules, HeapRule: (after.heap - before.heap) / memoryRules,
		RSSRule: (after.rss - before.rss) / memoryRules, RSSRuleAsIs: (asIs - before.rss) / memoryRules,
	}, nil
}

type memory struct{ heap, rss int64 }

// memoryNow collects garbage, gives back what is unused, and looks.
func memoryNow() (memory, error) {
	debug.FreeOSMemory()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	rss, err := resident()
	return memory{int64(s.HeapAlloc), rss}, err
}

// resident is the resident memory of this process.
func resident() (int64, error) {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, fmt.Errorf("read the resident memory: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kib, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
			if err != nil {
				return 0, fmt.Errorf("read the resident memory: %w", err)
			}
			return kib << 10, nil
		}
	}
	return 0, fmt.Errorf("read the resident memory: /proc/self/status does not name it")
}
