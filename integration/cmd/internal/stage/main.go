package stage

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// limit is the time after which a demo gives up.
const limit = 110 * time.Second

// Main is the main function of a demo: its steps with the binary to show, in order,
// and close, which takes away whatever they have made.
func (s *Stage) Main(steps func(binary string) []func(context.Context) error, closeAll func() error) {
	binary := flag.String("binary", "bin/kvnet", "the kvnet binary to show")
	flag.Parse()
	if os.Geteuid() != 0 {
		fmt.Fprintln(os.Stderr, "The demo makes network namespaces and switches, which needs root: run it as root.")
		os.Exit(1)
	}
	if err := s.run(steps(*binary), closeAll); err != nil {
		fmt.Fprintf(os.Stderr, "\nThe demo failed: %v\n", err)
		os.Exit(1)
	}
}

func (s *Stage) run(steps []func(context.Context) error, closeAll func() error) (err error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()

	began := time.Now()
	defer func() {
		s.Say("Clean up", "")
		err = errors.Join(err, closeAll())
		if err == nil {
			fmt.Printf("\nAll of it was right. It took %s.\n", time.Since(began).Round(time.Second))
		}
	}()
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}
