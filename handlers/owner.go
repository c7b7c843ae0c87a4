package handlers

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"kvnet/southbound/flow"
)

// OwnerOf makes the name of an owner: the handler's name and what the owner
// exists for, parted by "/". Names of objects may hold any character, so each
// part is escaped like a segment of a URL's path.
func OwnerOf(handler string, parts ...string) flow.Owner {
	var b strings.Builder
	b.WriteString(handler)
	for _, p := range parts {
		b.WriteString("/" + url.PathEscape(p))
	}
	return flow.Owner(b.String())
}

// OwnerParts gives back the parts that OwnerOf made o from. ok is false if o
// isn't an owner of the handler.
func OwnerParts(handler string, o flow.Owner) (parts []string, ok bool) {
	rest, ok := strings.CutPrefix(string(o), handler+"/")
	if !ok {
		return nil, false
	}
	for p := range strings.SplitSeq(rest, "/") {
		s, err := url.PathUnescape(p)
		if err != nil {
			return nil, false
		}
		parts = append(parts, s)
	}
	return parts, true
}

// OwnerSet collects owners, each once.
type OwnerSet struct{ set map[flow.Owner]struct{} }

// Add puts o into the set.
func (s *OwnerSet) Add(o flow.Owner) {
	if s.set == nil {
		s.set = map[flow.Owner]struct{}{}
	}
	s.set[o] = struct{}{}
}

// List returns the owners in order.
func (s *OwnerSet) List() []flow.Owner {
	if len(s.set) == 0 {
		return nil
	}
	out := make([]flow.Owner, 0, len(s.set))
	for o := range s.set {
		out = append(out, o)
	}
	slices.Sort(out)
	return out
}

// Waitf makes a Waiting.
func Waitf(format string, args ...any) Waiting { return Waiting(fmt.Sprintf(format, args...)) }
