package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// client calls a server's REST.
type client struct{ url, user string }

func (c *client) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&c.url, "url", "http://127.0.0.1:8181", "address of a server's REST")
	cmd.Flags().StringVar(&c.user, "user", "onos", "account; its password is taken from KVNET_PASSWORD")
}

// checkURL refuses what is no address of a server of HTTP.
func checkURL(text string) error {
	if u, err := url.Parse(text); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return fmt.Errorf("%q is no address of the form http://HOST:PORT or https://HOST:PORT", text)
	}
	return nil
}

// open sends a request without a body and returns the body of the answer, if it is
// a success.
func (c client) open(ctx context.Context, method, path string) (io.ReadCloser, error) {
	if err := checkURL(c.url); err != nil {
		return nil, misused("--url: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, method, strings.TrimRight(c.url, "/")+path, nil)
	if err != nil {
		return nil, misused("--url: %w", err)
	}
	req.SetBasicAuth(c.user, os.Getenv("KVNET_PASSWORD"))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode < http.StatusMultipleChoices {
		return resp.Body, nil
	}
	defer func() { _ = resp.Body.Close() }()
	var answer struct{ Message string }
	_ = json.NewDecoder(io.LimitReader(resp.Body, 64<<10)).Decode(&answer) // the status says enough
	return nil, fmt.Errorf("the server answers %s: %s%s", resp.Status, answer.Message, passwordHint(resp))
}

// passwordHint is to be added to an answer that a forgotten password explains.
func passwordHint(resp *http.Response) string {
	if resp.StatusCode == http.StatusUnauthorized && os.Getenv("KVNET_PASSWORD") == "" {
		return "; KVNET_PASSWORD, which has the password, is empty"
	}
	return ""
}

// ask sends a request without a body and reads the answer into v, if there is one
// to read.
func (c client) ask(ctx context.Context, timeout time.Duration, method, path string, v any) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	body, err := c.open(ctx, method, path)
	if err != nil {
		return err
	}
	defer func() { _ = body.Close() }()
	if v == nil {
		return nil
	}
	if err := json.NewDecoder(io.LimitReader(body, 16<<20)).Decode(v); err != nil {
		return fmt.Errorf("read the answer: %w", err)
	}
	return nil
}
