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
// told when etcd can't go on; it would end the process otherwise.
func engineLog(log *slog.Logger, fatal func(error)) *zap.Logger {
	core := &slogCore{log: log.With("component", "etcd"), said: &said{last: map[string]time.Time{}}}
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

// harmless are messages of etcd at warning level or above that say nothing about
// this use of it: there is no client port, no authentication and one member, a
// new store has no version for its first moments, and the server was told to
// stop.
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
}

// slogCore hands zap's entries to slog.
type slogCore struct {
	log    *slog.Logger
	fields []zapcore.Field
	said   *said
}

// Enabled implements zapcore.LevelEnabler.
func (c *slogCore) Enabled(l zapcore.Level) bool { return l >= zapcore.WarnLevel }

// With implements zapcore.Core.
func (c *slogCore) With(fields []zapcore.Field) zapcore.Core {
	return &slogCore{c.log, append(c.fields[:len(c.fields):len(c.fields)], fields...), c.said}
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
