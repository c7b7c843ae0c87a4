package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/spf13/cobra"
)

func clusterCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "cluster", Short: "Look after the cluster"}
	var url, user string
	raise := &cobra.Command{
		Use:   "raise-epoch",
		Short: "Let this cluster lead switches that remember a newer leader",
		Long: `A switch remembers the highest generation of a leader until ovs-vswitchd is
started again, and refuses older ones. After a store was lost and made anew, its
generations may be older than what switches remember. This raises the epoch above
the present time, so that the switches accept the leader again. Do it only when no
other kvnet cluster is to control these switches.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return raiseEpoch(cmd.Context(), cmd.OutOrStdout(), url, user)
		},
	}
	raise.Flags().StringVar(&url, "url", "http://127.0.0.1:8181", "address of a server's REST")
	raise.Flags().StringVar(&user, "user", "onos", "account; its password is taken from KVNET_PASSWORD")
	cmd.AddCommand(raise)
	return cmd
}

func raiseEpoch(ctx context.Context, out io.Writer, url, user string) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/kvnet/v1/cluster/raise-epoch", nil)
	if err != nil {
		return usageError{fmt.Errorf("--url: %w", err)}
	}
	req.SetBasicAuth(user, os.Getenv("KVNET_PASSWORD"))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("raise the epoch: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	if err != nil {
		return fmt.Errorf("raise the epoch: read the answer: %w", err)
	}
	var answer struct {
		Epoch   uint32 `json:"epoch"`
		Message string `json:"message"`
	}
	if err := json.Unmarshal(body, &answer); err != nil || resp.StatusCode != http.StatusOK {
		return fmt.Errorf("raise the epoch: the server answers %s: %s", resp.Status, answer.Message)
	}
	_, err = fmt.Fprintf(out, "The epoch is %d now; switches are asked again.\n", answer.Epoch)
	return err
}
