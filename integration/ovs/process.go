package ovs

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"kvnet/integration/netns"
)

// process is a child with its output in a file.
type process struct {
	name   string
	cmd    *exec.Cmd
	output string
	done   chan struct{}
}

func startProcess(cmd *exec.Cmd, name, output string) (*process, error) {
	f, err := os.OpenFile(output, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, fmt.Errorf("make output file of %s: %w", name, err)
	}
	defer func() { _ = f.Close() }()
	cmd.Stdout, cmd.Stderr = f, f
	if err := netns.Spawn(cmd); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	p := &process{name: name, cmd: cmd, output: output, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		_ = cmd.Wait() // it is killed in the end, so there is always an error
	}()
	return p, nil
}

// kill ends the process and waits until it is gone. A nil process is no error.
func (p *process) kill() error {
	if p == nil {
		return nil
	}
	if err := p.signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-p.done
	return nil
}

func (p *process) signal(s os.Signal) error {
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("send %v to %s: %w", s, p.name, err)
	}
	return nil
}

func (p *process) outputTail() string {
	b, err := os.ReadFile(p.output)
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(b[max(0, len(b)-2000):]))
}
