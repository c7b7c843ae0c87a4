package relay

import (
	"fmt"
	"strings"
	"sync"
)

// Recorder keeps what went through a relay.
type Recorder struct {
	mu     sync.Mutex
	frames []Frame
}

// Mark is a moment in the record.
type Mark int

// Mark returns the present end of the record.
func (r *Recorder) Mark() Mark {
	r.mu.Lock()
	defer r.mu.Unlock()
	return Mark(len(r.frames))
}

// Since returns the frames after m that keep accepts; a nil keep accepts all.
func (r *Recorder) Since(m Mark, keep func(Frame) bool) []Frame {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []Frame
	for _, f := range r.frames[m:] {
		if keep == nil || keep(f) {
			out = append(out, f)
		}
	}
	return out
}

// Count counts messages by type; those in bundles count like the others.
type Count struct{ FlowMods, GroupMods, PacketOuts, BundleAdds, All int }

// Count counts the messages in a direction after m. An empty switch name counts
// those of all switches.
func (r *Recorder) Count(m Mark, switchName string, d Direction) Count {
	var c Count
	for _, f := range r.Since(m, func(f Frame) bool {
		return f.Direction == d && (switchName == "" || f.Switch == switchName)
	}) {
		c.All++
		if f.BundleAdd {
			c.BundleAdds++
		}
		switch f.Type {
		case FlowMod:
			c.FlowMods++
		case GroupMod:
			c.GroupMods++
		case PacketOut:
			c.PacketOuts++
		}
	}
	return c
}

// Writes returns what changed rules or groups after m.
func (r *Recorder) Writes(m Mark) []Frame { return r.Since(m, Frame.Writes) }

// Describe lists frames, one a line, for the message of a failed test.
func Describe(frames []Frame) string {
	var b strings.Builder
	for _, f := range frames {
		fmt.Fprintln(&b, f)
	}
	return b.String()
}

func (r *Recorder) record(switchName string, d Direction, message []byte) Frame {
	f := newFrame(switchName, d, message)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.frames = append(r.frames, f)
	return f
}
