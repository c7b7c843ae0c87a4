// Command live runs a command against a kvnet server that it starts for it, with
// empty data, on addresses of its own on loopback. The command finds the server at
// KVNET_URL, and the same server behind a reverse proxy that serves it below a path
// at KVNET_PROXY_URL. Its status is that of the command; it is an error, too, if
// the server's log shows that it panicked.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"kvnet/integration/server"
)

// prefix is the path below which the proxy serves kvnet.
const prefix = "/clouds/one"

func main() {
	binary := flag.String("binary", "bin/kvnet", "the kvnet `program`")
	limit := flag.Duration("limit", 15*time.Minute, "how long all may take")
	flag.Parse()
	if err := within(*limit, *binary, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// within runs the command and ends it after the limit, or when this process is
// told to end.
func within(limit time.Duration, binary string, command []string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return run(ctx, binary, command)
}

func run(ctx context.Context, binary string, command []string) (err error) {
	if len(command) == 0 {
		return errors.New("usage: live [-binary FILE] COMMAND [ARGUMENT]…")
	}
	dir, err := os.MkdirTemp("", "kvnet-live-")
	if err != nil {
		return fmt.Errorf("make the server's folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	s, err := server.New(server.Config{Binary: binary, Dir: dir, Name: "live"})
	if err != nil {
		return err
	}
	if err := s.Start(ctx); err != nil {
		return errors.Join(err, s.Kill())
	}
	defer func() { err = errors.Join(err, s.Stop(), s.CheckLog()) }()
	proxied, closeProxy, err := proxy(s.REST)
	if err != nil {
		return err
	}
	defer closeProxy()

	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), "KVNET_URL=http://"+s.REST, "KVNET_PROXY_URL="+proxied)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w\nthe end of the server's log:\n%s", command[0], err, s.LogTail())
	}
	return nil
}

// proxy serves the server at address below the prefix.
func proxy(address string) (base string, stop func(), err error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, fmt.Errorf("listen for the proxy: %w", err)
	}
	target := &url.URL{Scheme: "http", Host: address}
	handler := http.StripPrefix(prefix, &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) },
	})
	s := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.Serve(ln) // ends when it is closed
	}()
	return "http://" + ln.Addr().String() + prefix, func() {
		_ = s.Close()
		<-done
	}, nil
}
