package bench

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"strings"
	"time"

	"github.com/gin-gonic/gin" //nolint:depguard // the bare framework is what kvnet is compared with
)

// trivialPath is the only route of the trivial server.
const trivialPath = "/trivial"

// serveTrivial serves a route of gin that does nothing but answer a fixed JSON,
// prints its address and ends when its input does.
func serveTrivial(in io.Reader, out io.Writer) error {
	gin.SetMode(gin.ReleaseMode)
	g := gin.New()
	g.GET(trivialPath, func(c *gin.Context) { c.JSON(http.StatusOK, gin.H{"a": 1}) })
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	s := &http.Server{Handler: g, ReadHeaderTimeout: 10 * time.Second}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ln) }()
	if _, err := fmt.Fprintln(out, ln.Addr()); err != nil {
		return fmt.Errorf("tell the address: %w", err)
	}
	_, _ = io.Copy(io.Discard, in) // until whoever started this has gone
	err = s.Close()
	if e := <-ended; !errors.Is(e, http.ErrServerClosed) {
		err = errors.Join(err, e)
	}
	return err
}

// trivial is the trivial server, in a process of its own.
type trivial struct {
	cmd     *exec.Cmd
	in      io.Closer
	address string
}

func (b *Bench) startTrivial(ctx context.Context) (*trivial, error) {
	cmd := b.Child(ctx, "trivial")
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start the trivial server: %w", err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start the trivial server: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the trivial server: %w", err)
	}
	t := &trivial{cmd: cmd, in: in}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start the trivial server: read its address: %w", err), t.stop())
	}
	t.address = strings.TrimSpace(line)
	return t, nil
}

func (t *trivial) stop() error {
	_ = t.in.Close() // ends it
	if err := t.cmd.Wait(); err != nil {
		return fmt.Errorf("stop the trivial server: %w", err)
	}
	return nil
}
