package reread

import (
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
)

// Value is what was made of files. It is made anew when they change; files that
// can't be used, as while only one of a pair is new, leave the former one.
type Value[T any] struct {
	what  string
	log   *slog.Logger
	load  func() (T, error)
	paths []string

	current atomic.Pointer[made[T]]
	// loading is held by whoever reads the files again. It guards what follows:
	// the version that could not be used, and what was said about the last one.
	loading sync.Mutex
	failed  versions
	said    string
}

// made is a value with the version of the files that it was made of. It never
// changes.
type made[T any] struct {
	value T
	of    versions
}

// New reads the files at the paths with load. what names the value in errors and in
// the log, as in "the users file".
func New[T any](what string, log *slog.Logger, load func() (T, error), paths ...string) (*Value[T], error) {
	v := &Value[T]{what: what, log: log, load: load, paths: paths}
	// The version is taken before the files are read: a change meanwhile is then
	// seen as one by the next look.
	now, err := versionsOf(paths)
	if err == nil {
		err = v.read(now)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", what, err)
	}
	return v, nil
}

// Get returns the present value. It doesn't wait for another caller who is reading
// the files: it returns the former value then.
func (v *Value[T]) Get() T {
	now, err := versionsOf(v.paths)
	if err == nil && now.same(v.current.Load().of) || !v.loading.TryLock() {
		return v.current.Load().value
	}
	defer v.loading.Unlock()
	if err == nil && !now.same(v.current.Load().of) && !now.same(v.failed) {
		if err = v.read(now); err == nil {
			v.failed, v.said = nil, ""
			v.log.Info(v.what+" was read again", "files", v.paths)
		} else {
			v.failed = now
		}
	}
	if err != nil && err.Error() != v.said {
		v.said = err.Error()
		v.log.Error(v.what+" can't be used as it is now, the former one stays", "error", err)
	}
	return v.current.Load().value
}

// read makes a value of the files, which had this version before.
func (v *Value[T]) read(of versions) error {
	value, err := v.load()
	if err != nil {
		return err
	}
	v.current.Store(&made[T]{value, of})
	return nil
}

// versions tells two versions of the same files apart.
type versions []os.FileInfo

func versionsOf(paths []string) (versions, error) {
	out := make(versions, len(paths))
	for i, p := range paths {
		info, err := os.Stat(p)
		if err != nil {
			return nil, err
		}
		out[i] = info
	}
	return out, nil
}

func (v versions) same(w versions) bool {
	if len(v) != len(w) {
		return false
	}
	for i := range v {
		if v[i].Size() != w[i].Size() || !v[i].ModTime().Equal(w[i].ModTime()) || !os.SameFile(v[i], w[i]) {
			return false
		}
	}
	return true
}
