package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"kvnet/integration/freeport"
	"kvnet/integration/netns"
)

// Config says how a server is run.
type Config struct {
	Binary string
	// Dir holds the server's data and log.
	Dir  string
	Name string
	// AuditInterval and FullAuditInterval are the flags of these names.
	AuditInterval, FullAuditInterval time.Duration
	// Args are further flags.
	Args []string
	// NS is the namespace that the server runs in, and Host its address there. The
	// ports are the usual ones then. nil: this process's own namespace, loopback,
	// and free ports.
	NS   *netns.NS
	Host string
}

// Server is a kvnet server that can be killed and started again with the same
// data at the same addresses.
type Server struct {
	Config
	// REST, OpenFlow, Metrics, Store and Gossip are the server's addresses.
	REST, OpenFlow, Metrics, Store, Gossip string

	client *http.Client
	cmd    *exec.Cmd
	done   chan struct{}
}

// readyTimeout bounds the time from the start until /readyz is 200.
const readyTimeout = 30 * time.Second

// New chooses free addresses for a server, which is not started yet.
func New(c Config) (*Server, error) {
	s := &Server{Config: c, client: &http.Client{Timeout: 15 * time.Second}}
	if c.NS != nil {
		s.REST, s.OpenFlow, s.Metrics = c.Host+":8181", c.Host+":6653", c.Host+":9300"
		s.Store, s.Gossip = c.Host+":2380", c.Host+":7946"
		s.client.Transport = &http.Transport{DialContext: s.dialThere}
		return s, nil
	}
	for _, at := range []*string{&s.REST, &s.OpenFlow, &s.Metrics, &s.Store, &s.Gossip} {
		var err error
		if *at, err = freeport.Address(); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Arguments is the command line that runs the server.
func (s *Server) Arguments() []string {
	args := []string{
		"server", "--name", s.Name, "--data-dir", s.DataDir(),
		"--rest-listen", s.REST, "--openflow-listen", s.OpenFlow,
		"--metrics-listen", s.Metrics, "--store-listen", s.Store,
		"--gossip-listen", s.Gossip, "--manage-bridges=false",
	}
	if s.AuditInterval > 0 {
		args = append(args, "--audit-interval", s.AuditInterval.String())
	}
	if s.FullAuditInterval > 0 {
		args = append(args, "--full-audit-interval", s.FullAuditInterval.String())
	}
	return append(args, s.Args...)
}

// DataDir is the directory of the server's store.
func (s *Server) DataDir() string { return filepath.Join(s.Dir, "data") }

// LogFile holds what the server has printed in all its lives.
func (s *Server) LogFile() string { return filepath.Join(s.Dir, "server.log") }

// Start runs the server and waits until it is ready.
func (s *Server) Start(ctx context.Context) error {
	if err := s.Launch(); err != nil {
		return err
	}
	return s.WaitReady(ctx)
}

// Launch runs the server without waiting for anything.
func (s *Server) Launch() error {
	if err := os.MkdirAll(s.Dir, 0o755); err != nil {
		return fmt.Errorf("make folder of the server: %w", err)
	}
	log, err := os.OpenFile(s.LogFile(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return fmt.Errorf("open log of the server: %w", err)
	}
	defer func() { _ = log.Close() }()
	cmd := exec.Command(s.Binary, s.Arguments()...)
	if s.NS != nil {
		// ip(8) becomes the server, so signals reach the server itself.
		cmd = s.NS.Command(context.Background(), s.Binary, s.Arguments()...)
	}
	cmd.Stdout, cmd.Stderr = log, log
	if err := netns.Spawn(cmd); err != nil {
		return fmt.Errorf("start %s: %w", s.Binary, err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = cmd.Wait() // Stop looks at the exit status
	}()
	s.cmd, s.done = cmd, done
	return nil
}

// WaitReady waits until the server says that it is ready.
func (s *Server) WaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	var last error
	for {
		status, _, err := s.Do(ctx, http.MethodGet, "/readyz", nil)
		if err == nil && status == http.StatusOK {
			return nil
		}
		if last = err; err == nil {
			last = fmt.Errorf("/readyz is %d", status)
		}
		select {
		case <-s.done:
			return fmt.Errorf("the server ended at once:\n%s", s.LogTail())
		case <-ctx.Done():
			return fmt.Errorf("wait until the server is ready: %w (%w)\n%s", last, ctx.Err(), s.LogTail())
		case <-tick.C:
		}
	}
}

// Running tells whether the server's process lives.
func (s *Server) Running() bool {
	if s.done == nil {
		return false
	}
	select {
	case <-s.done:
		return false
	default:
		return true
	}
}

// Signal sends a signal to the server's process.
func (s *Server) Signal(signal os.Signal) error {
	if !s.Running() {
		return fmt.Errorf("send %v to the server: it doesn't run", signal)
	}
	if err := s.cmd.Process.Signal(signal); err != nil {
		return fmt.Errorf("send %v to the server: %w", signal, err)
	}
	return nil
}

// Done is closed when the process of the last start has ended.
func (s *Server) Done() <-chan struct{} { return s.done }

// Kill ends the server as by kill -9.
func (s *Server) Kill() error {
	if !s.Running() {
		return nil
	}
	if err := s.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("kill the server: %w", err)
	}
	<-s.done
	return nil
}

// stopTimeout is how long a server may take to end after SIGTERM.
const stopTimeout = 15 * time.Second

// Stop asks the server to end and checks that it does so without complaint.
func (s *Server) Stop() error {
	if !s.Running() {
		return nil
	}
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop the server: %w", err)
	}
	select {
	case <-s.done:
	case <-time.After(stopTimeout):
		return errors.Join(fmt.Errorf("the server did not end within %s of SIGTERM", stopTimeout), s.Kill())
	}
	if code := s.cmd.ProcessState.ExitCode(); code != 0 {
		return fmt.Errorf("the server ended with status %d after SIGTERM:\n%s", code, s.LogTail())
	}
	return nil
}

// LogTail is the end of the server's log.
func (s *Server) LogTail() string {
	b, err := os.ReadFile(s.LogFile())
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(b[max(0, len(b)-6000):]))
}

// complaints in a log say that the server is broken, whatever the test sees.
var complaints = [][]byte{[]byte("WARNING: DATA RACE"), []byte("panic: "), []byte("fatal error: ")}

// CheckLog returns an error if the log shows a data race or a panic.
func (s *Server) CheckLog() error {
	b, err := os.ReadFile(s.LogFile())
	if err != nil {
		return fmt.Errorf("read log of the server: %w", err)
	}
	for _, c := range complaints {
		if i := bytes.Index(b, c); i >= 0 {
			return fmt.Errorf("the server's log shows %q:\n%s", c, b[i:min(len(b), i+4000)])
		}
	}
	return nil
}
