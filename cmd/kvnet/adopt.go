package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"kvnet/model"
	"kvnet/northbound/rest"
)

// adoptCall is what `kvnet adopt` was called with.
type adoptCall struct {
	cookie, dpid, url, user string
	yes                     bool
}

func adoptCommand() *cobra.Command {
	var a adoptCall
	cmd := &cobra.Command{
		Use:   "adopt --cookie VALUE/MASK",
		Short: "Take over switches that hold rules of ONOS",
		Long: `On a switch that holds rules of ONOS kvnet writes nothing. This shows what a take-over
does to each connected switch: how many of its rules have the cookie, how many of them
one of kvnet's replaces and how many go, how many groups go with them, and how many
rules kvnet adds. With --yes it is done: on each switch in one step, kvnet's own rules
first, so that no packet is lost. Stop ONOS before, or it writes its rules again.

ONOS's cookies have the application's id in the upper 16 bits:
  kvnet adopt --cookie 0x00b5000000000000/0xffff000000000000
The password is taken from KVNET_PASSWORD.`,
		Args: arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := a.check(); err != nil {
				return usageError{err}
			}
			return a.run(cmd.Context(), cmd.OutOrStdout())
		},
	}
	f := cmd.Flags()
	f.StringVar(&a.cookie, "cookie", "", "cookie and mask of the rules, VALUE/MASK")
	f.StringVar(&a.dpid, "switch", "", "only this switch (of:…); default: all that are connected")
	f.BoolVar(&a.yes, "yes", false, "do it, rather than only show what would be done")
	f.StringVar(&a.url, "url", "http://127.0.0.1:8181", "address of a server's REST")
	f.StringVar(&a.user, "user", "onos", "account; its password is taken from KVNET_PASSWORD")
	return cmd
}

// check refuses what no server has to be asked about.
func (a adoptCall) check() error {
	if a.cookie == "" {
		return errors.New("--cookie is needed, for example --cookie 0x00b5000000000000/0xffff000000000000")
	}
	if _, _, err := rest.ParseCookie(a.cookie); err != nil {
		return fmt.Errorf("--cookie: %w", err)
	}
	if a.dpid != "" {
		if _, err := model.ParseDPID(a.dpid); err != nil {
			return fmt.Errorf("--switch: %w", err)
		}
	}
	if err := checkURL(a.url); err != nil {
		return fmt.Errorf("--url: %w", err)
	}
	return nil
}

func (a adoptCall) run(ctx context.Context, out io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, 80*time.Second)
	defer cancel()
	body, err := json.Marshal(map[string]any{"cookie": a.cookie, "switch": a.dpid, "dryRun": !a.yes})
	if err != nil {
		return fmt.Errorf("adopt: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimRight(a.url, "/")+"/kvnet/v1/adopt", bytes.NewReader(body))
	if err != nil {
		return misused("--url: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.SetBasicAuth(a.user, os.Getenv("KVNET_PASSWORD"))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("adopt: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 64<<20))
	if err != nil {
		return fmt.Errorf("adopt: read the answer: %w", err)
	}
	var answer struct {
		rest.AdoptReport
		Message string `json:"message"`
	}
	if err := json.Unmarshal(text, &answer); err != nil || resp.StatusCode != http.StatusOK {
		return fmt.Errorf("adopt: the server answers %s: %s%s", resp.Status, answer.Message, passwordHint(resp))
	}
	return a.show(out, answer.AdoptReport)
}

// show prints the report. It fails if not every switch was taken over.
func (a adoptCall) show(out io.Writer, r rest.AdoptReport) error {
	var b bytes.Buffer
	if len(r.Switches) == 0 {
		fmt.Fprintln(&b, "No switch is connected.")
	} else {
		w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
		fmt.Fprintln(w, "SWITCH\tMATCHED\tREPLACED\tREMOVED\tGROUPS REMOVED\tADDED\tERROR")
		for _, s := range r.Switches {
			fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\t%s\n", s.ID, s.Matched, s.Replaced, s.Removed, s.Groups, s.Added, s.Error)
		}
		if err := w.Flush(); err != nil {
			return fmt.Errorf("adopt: print: %w", err)
		}
	}
	for _, x := range r.Waiting {
		fmt.Fprintf(&b, "%s waits for %s: its rules are not among those that are added.\n", x.Owner, x.For)
	}
	failed := 0
	for _, s := range r.Switches {
		if s.Error != "" {
			failed++
		}
	}
	if !a.yes {
		fmt.Fprintln(&b, "Nothing was changed: this was a dry run. Do it with --yes.")
	}
	if _, err := out.Write(b.Bytes()); err != nil {
		return fmt.Errorf("adopt: print: %w", err)
	}
	if failed > 0 {
		return fmt.Errorf("adopt: %d of %d switches are not taken over", failed, len(r.Switches))
	}
	return nil
}
