package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// engineLog makes a logger for etcd that writes to log: warnings and errors
// only, without those that mean nothing to an operator. fatal, if not nil, is
// told when etcd can't go on; it would end the process otherwise. removed is
// told when the other members say that this one is none any more; etcd tells
// that in its log only.
func engineLog(log *slog.Logger, fatal func(error), removed func()) *zap.Logger {
	core := &slogCore{log: log.With("component", "etcd"), said: &said{last: map[string]time.Time{}}, removed: removed}
	if fatal == nil {
		return zap.New(core)
	}
	hook := fatalHook(fatal)
	return zap.New(core, zap.WithFatalHook(hook), zap.WithPanicHook(hook))
}

// fatalHook ends only the goroutine in which etcd met an error that it can't
// handle.
type fatalHook func(error)

// OnWrite implements zapcore.CheckWriteHook.
func (h fatalHook) OnWrite(e *zapcore.CheckedEntry, fields []zapcore.Field) {
	err := errors.New(e.Message)
	for _, f := range fields {
		if x, ok := f.Interface.(error); ok {
			err = fmt.Errorf("%s: %w", e.Message, x)
		}
	}
	h(err)
	runtime.Goexit()
}

// harmless are messages of etcd at warning level or above that say nothing, or
// nothing new, about this use of it: there is no client port and no
// authentication, a new store has no version for its first moments, and the
// server was told to stop.
var harmless = map[string]bool{
	"Running http and grpc server on single port. This is not recommended for production.":             true,
	"simple token is not cryptographically signed":                                                     true,
	"Failed to detect storage schema version. Please wait till wal snapshot before upgrading cluster.": true,
	"Failed to detect schema version":                                                                  true,
	"failed to update storage version":                                                                 true,
	"server has stopped; stopping cluster version's monitor":                                           true,
	"server has stopped; stopping storage version's monitor":                                           true,
	"stopped publish because server is stopping":                                                       true,
	"stopped publish because server is stopped":                                                        true,

	// What the loss of another member means to each of the connections with it.
	// "peer became inactive" tells of it once.
	"closed TCP streaming connection with remote peer":        true,
	"lost TCP streaming connection with remote peer":          true,
	"failed to find remote peer in cluster":                   true,
	"prober detected unhealthy status":                        true,
	"failed to reach the peer URL":                            true,
	"failed to get version":                                   true,
	"rejected stream from remote peer because it was removed": true,
	"rejected Raft message from removed member":               true,
	"failed to process Raft message":                          true,

	// What whoever has asked for it is told by an error, or tried again.
	"rejecting member add request; local member has not been connected to majority peers, reconfigure breaks active quorum": true,
	"rejecting member remove request; local member has not been connected to all peers, reconfigure breaks active quorum":   true,
	"leadership transfer failed":                   true,
	"data-dir used by this member must be removed": true,
}

// slogCore hands zap's entries to slog.
type slogCore struct {
	log    *slog.Logger
	fields []zapcore.Field
	said   *said
	// removed is called when an entry says that this member was removed.
	removed func()
}

// Enabled implements zapcore.LevelEnabler.
func (c *slogCore) Enabled(l zapcore.Level) bool { return l >= zapcore.WarnLevel }

// With implements zapcore.Core.
func (c *slogCore) With(fields []zapcore.Field) zapcore.Core {
	return &slogCore{c.log, append(c.fields[:len(c.fields):len(c.fields)], fields...), c.said, c.removed}
}

// Check implements zapcore.Core.
func (c *slogCore) Check(e zapcore.Entry, ce *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if !c.Enabled(e.Level) || harmless[e.Message] {
		return ce
	}
	return ce.AddCore(e, c)
}

// Write implements zapcore.Core.
func (c *slogCore) Write(e zapcore.Entry, fields []zapcore.Field) error {
	if c.removed != nil && e.Message == "server error" && saysRemoved(fields) {
		c.removed()
		return nil
	}
	if closing(fields) || strings.Contains(e.Message, pendingChange) {
		return nil
	}
	if !c.said.mayRepeat(e.Message, e.Time) {
		return nil
	}
	level := slog.LevelWarn
	if e.Level >= zapcore.ErrorLevel {
		level = slog.LevelError
	}
	enc := zapcore.NewMapObjectEncoder()
	for _, f := range c.fields {
		f.AddTo(enc)
	}
	for _, f := range fields {
		f.AddTo(enc)
	}
	attrs := make([]slog.Attr, 0, len(enc.Fields))
	for k, v := range enc.Fields {
		attrs = append(attrs, slog.Any(k, v))
	}
	c.log.LogAttrs(context.Background(), level, e.Message, attrs...)
	return nil
}

// Sync implements zapcore.Core.
func (c *slogCore) Sync() error { return nil }

// pendingChange is what a new member says while it waits a tick for its own entry
// in the list of members.
const pendingChange = "still pending configuration changes to apply"

// closing tells a message that only says that something was ended.
func closing(fields []zapcore.Field) bool {
	for _, f := range fields {
		if err, ok := f.Interface.(error); ok && (errors.Is(err, net.ErrClosed) ||
			errors.Is(err, http.ErrServerClosed) || errors.Is(err, context.Canceled)) {
			return true
		}
	}
	return false
}

// saysRemoved tells the error of a member that was removed.
func saysRemoved(fields []zapcore.Field) bool {
	for _, f := range fields {
		if err, ok := f.Interface.(error); ok && strings.Contains(err.Error(), "permanently removed") {
			return true
		}
	}
	return false
}

// repeatAfter is how long the same message isn't logged again. A slow disk makes
// etcd complain about each request.
const repeatAfter = 10 * time.Second

// said remembers when messages were logged.
type said struct {
	mu   sync.Mutex
	last map[string]time.Time
}

func (s *said) mayRepeat(msg string, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t, ok := s.last[msg]; ok && now.Sub(t) < repeatAfter {
		return false
	}
	if len(s.last) >= 256 {
		clear(s.last)
	}
	s.last[msg] = now
	return true
}
