package rest

import (
	"slices"
	"strings"
)

// allowed are the methods of a path. gin knows them too, but takes some from
// other paths that match less well when it makes a header of them.
type allowed struct {
	segments []string // of gin's pattern
	methods  string   // as the Allow header has them
}

func newAllowed(pattern string, methods []string) allowed {
	methods = slices.Clone(methods)
	slices.Sort(methods)
	return allowed{strings.Split(pattern, "/"), strings.Join(methods, ", ")}
}

// matches tells whether the pattern is that of an escaped path.
func (a *allowed) matches(path []string) bool {
	for i, s := range a.segments {
		switch {
		case strings.HasPrefix(s, "*"):
			return i < len(path)
		case i == len(path):
			return false
		case strings.HasPrefix(s, ":"):
			if path[i] == "" {
				return false
			}
		case s != path[i]:
			return false
		}
	}
	return len(a.segments) == len(path)
}

// before tells whether a is the closer one of two patterns that match one path:
// what is written out wins.
func (a *allowed) before(b *allowed) bool {
	for i := range min(len(a.segments), len(b.segments)) {
		x, y := openness(a.segments[i]), openness(b.segments[i])
		if x != y {
			return x < y
		}
	}
	return false
}

func openness(segment string) int {
	switch {
	case strings.HasPrefix(segment, "*"):
		return 2
	case strings.HasPrefix(segment, ":"):
		return 1
	}
	return 0
}

// allow is the Allow header of an escaped path; "" if there is nothing.
func (s *Server) allow(path string) string {
	segments := strings.Split(path, "/")
	var best *allowed
	for i := range s.allowed {
		if a := &s.allowed[i]; a.matches(segments) && (best == nil || a.before(best)) {
			best = a
		}
	}
	if best == nil {
		return ""
	}
	return best.methods
}
