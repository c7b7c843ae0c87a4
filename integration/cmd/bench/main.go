// Command bench measures kvnet and prints the figures of docs/benchmarks.md, as
// ratios within one run.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"kvnet/integration/bench"
)

// limit is the time after which the measurement gives up.
const limit = 5 * time.Minute

func main() {
	binary := flag.String("binary", "bin/kvnet", "the kvnet binary to measure")
	only := flag.String("only", bench.Parts, "letters of the figures to measure")
	child := flag.Bool("child", false, "measure what the arguments say in this process and print it as JSON (used by this program)")
	flag.Parse()
	if err := run(*binary, *only, *child, flag.Args()); err != nil {
		fmt.Fprintf(os.Stderr, "The benchmark failed: %v\n", err)
		os.Exit(1)
	}
}

func run(binary, only string, child bool, args []string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if child {
		return bench.RunChild(ctx, os.Stdout, args)
	}
	if unknown := strings.Trim(only, bench.Parts); unknown != "" || len(args) > 0 {
		return fmt.Errorf("usage: bench [-binary file] [-only letters of %s]", bench.Parts)
	}
	binary, err := filepath.Abs(binary)
	if err != nil {
		return fmt.Errorf("find the binary: %w", err)
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	b := bench.Bench{Out: os.Stdout, Binary: binary, Child: func(ctx context.Context, args ...string) *exec.Cmd {
		return exec.CommandContext(ctx, self, append([]string{"-child"}, args...)...)
	}}
	began, before := time.Now(), load()
	if err := b.Run(ctx, only); err != nil {
		return err
	}
	fmt.Printf("It took %s on %d processors; load average %s before, %s after.\n", time.Since(began).Round(time.Second), runtime.NumCPU(), before, load())
	return nil
}

// load is the machine's load average over a minute: with more than what is
// measured running, times are longer and ratios shift.
func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	first, _, _ := strings.Cut(string(text), " ")
	return first
}
