package store

import "time"

// Op names an operation, for figures.
type Op string

// The operations that an Observer hears of.
const (
	OpCreate Op = "create"
	OpUpdate Op = "update"
	OpDelete Op = "delete"
	OpPut    Op = "put"
	OpDecide Op = "decide"
	OpTerm   Op = "term" // taking a term, raising the epoch
	OpRead   Op = "read"
	OpMember Op = "member" // a change of members, or of who leads among them
)

// Ops are all operations.
var Ops = []Op{OpCreate, OpUpdate, OpDelete, OpPut, OpDecide, OpTerm, OpRead, OpMember}

// Observer hears of every operation when it has ended, for figures such as
// latencies and errors. It is called by the goroutine that ran the operation and
// must not block. Repetitions after somebody else's write are part of the
// operation; errors of Update's f are errors of the operation.
type Observer interface {
	Operation(op Op, took time.Duration, err error)
}

// Stats are figures of the store at one moment.
type Stats struct {
	// Revision is the one that the tables have reached.
	Revision int64
	// Used and Size are the bytes that are in use in the embedded engine's file,
	// and its size. Quota is the limit of Used. They are 0 for an external
	// engine.
	Used, Size, Quota int64
	// Free are the bytes that the disk has left for the embedded engine.
	Free int64
	// WatchesLost counts how often the watch was lost since the store was
	// opened.
	WatchesLost int64
	// Unreadable is the number of stored values that this server can't read.
	Unreadable int
}

// Stats returns the present figures. It asks nobody but this process.
func (s *Store) Stats() Stats {
	st := Stats{Revision: s.db.Snapshot().Revision(), WatchesLost: s.watchesLost.Load()}
	s.mu.Lock()
	st.Unreadable = len(s.unreadable)
	s.mu.Unlock()
	if s.engine != nil {
		st.Used, st.Size, st.Quota = s.engine.used(), s.engine.size(), s.c.Quota
		st.Free, _ = s.c.tuning.free(s.c.Dir)
	}
	return st
}
