package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"kvnet/cluster/gossip"
	"kvnet/cluster/store"
	"kvnet/northbound/rest"
)

func clusterCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "cluster", Short: "Look after the cluster"}
	cmd.AddCommand(raiseEpochCommand(), membersCommand(), removeCommand(), backupCommand(), restoreCommand(), recoverCommand())
	return cmd
}

// clientCommand makes a command that run carries out with the client of its flags.
func clientCommand(cmd *cobra.Command, run func(cmd *cobra.Command, c client, args []string) error) *cobra.Command {
	var c client
	c.flags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return run(cmd, c, args) }
	return cmd
}

func raiseEpochCommand() *cobra.Command {
	return clientCommand(&cobra.Command{
		Use:   "raise-epoch",
		Short: "Let this cluster lead switches that remember a newer leader",
		Long: `A switch remembers the highest generation of a leader until ovs-vswitchd is
started again, and refuses older ones. After a store was lost and made anew, its
generations may be older than what switches remember. This raises the epoch above
the present time, so that the switches accept the leader again. Do it only when no
other kvnet cluster is to control these switches. The leader has to be asked.`,
		Args: arguments(),
	}, func(cmd *cobra.Command, c client, _ []string) error {
		return raiseEpoch(cmd.Context(), cmd.OutOrStdout(), c.url, c.user)
	})
}

func raiseEpoch(ctx context.Context, out io.Writer, url, user string) error {
	var answer struct {
		Epoch uint32 `json:"epoch"`
	}
	if err := (client{url, user}).ask(ctx, 10*time.Second, http.MethodPost, "/kvnet/v1/cluster/raise-epoch", &answer); err != nil {
		return fmt.Errorf("raise the epoch: %w", err)
	}
	_, err := fmt.Fprintf(out, "The epoch is %d now; switches are asked again.\n", answer.Epoch)
	return err
}

func membersCommand() *cobra.Command {
	return clientCommand(&cobra.Command{
		Use:   "members",
		Short: "List the servers of the cluster",
		Args:  arguments(),
	}, func(cmd *cobra.Command, c client, _ []string) error {
		var answer struct{ Members []rest.Member }
		if err := c.ask(cmd.Context(), 10*time.Second, http.MethodGet, "/kvnet/v1/members", &answer); err != nil {
			return fmt.Errorf("list the members: %w", err)
		}
		return showMembers(cmd.OutOrStdout(), answer.Members)
	})
}

// showMembers prints the members, with a dash for what is not known of one.
func showMembers(out io.Writer, members []rest.Member) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "NAME\tADDRESS\tSTATE\tROLE\tTERM\tLAG\tSWITCHES\tVERSION")
	for _, m := range members {
		role := "follower"
		switch {
		case m.Leader:
			role = "leader"
		case !m.Voter:
			role = "no vote"
		case m.State != gossip.Alive.String():
			role = "-"
		}
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", m.Name, cmp.Or(m.Address, "-"), m.State, role,
			known(m.Term), known(m.Lag), known(m.Switches), cmp.Or(m.Version, "-"))
	}
	return w.Flush()
}

func known[T any](v *T) string {
	if v == nil {
		return "-"
	}
	return fmt.Sprint(*v)
}

func removeCommand() *cobra.Command {
	return clientCommand(&cobra.Command{
		Use:   "remove NAME",
		Short: "Take a server out of the cluster for good",
		Long: `The cluster counts a server that has failed or was stopped among its members until
it comes back or is removed. A removed server ends; its data directory has to be
emptied before it can join again. A removal that would cost the quorum is refused.
A server that lost its data and joins again under its name needs no removal.`,
		Args: arguments("NAME"),
	}, func(cmd *cobra.Command, c client, args []string) error {
		if err := c.ask(cmd.Context(), 30*time.Second, http.MethodDelete, "/kvnet/v1/cluster/members/"+url.PathEscape(args[0]), nil); err != nil {
			return fmt.Errorf("remove the member %q: %w", args[0], err)
		}
		_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s is no member any more.\n", args[0])
		return err
	})
}

func backupCommand() *cobra.Command {
	return clientCommand(&cobra.Command{
		Use:   "backup FILE",
		Short: "Write everything that is stored to a file",
		Long: `The file contains every write that was acknowledged before the call, secrets among
them; only its owner can read it. A file that exists is not overwritten. For - it goes
to the standard output.`,
		Args: arguments("FILE"),
	}, func(cmd *cobra.Command, c client, args []string) error {
		if args[0] == "-" {
			return c.copyBackup(cmd.Context(), cmd.OutOrStdout())
		}
		n, err := c.backup(cmd.Context(), args[0])
		if err != nil {
			return fmt.Errorf("back up to %s: %w", args[0], err)
		}
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s has %d bytes.\n", args[0], n)
		return err
	})
}

// copyBackup writes a backup to out.
func (c client) copyBackup(ctx context.Context, out io.Writer) error {
	body, err := c.open(ctx, http.MethodPost, "/kvnet/v1/cluster/backup")
	if err != nil {
		return fmt.Errorf("back up: %w", err)
	}
	_, err = io.Copy(out, body)
	if err = errors.Join(err, body.Close()); err != nil {
		return fmt.Errorf("back up: %w", err)
	}
	return nil
}

// backup writes a backup to a file, which is there whole or not at all.
func (c client) backup(ctx context.Context, file string) (n int64, err error) {
	if _, err := os.Lstat(file); !errors.Is(err, os.ErrNotExist) {
		return 0, errors.Join(err, os.ErrExist)
	}
	body, err := c.open(ctx, http.MethodPost, "/kvnet/v1/cluster/backup")
	if err != nil {
		return 0, err
	}
	defer func() { _ = body.Close() }()
	f, err := os.CreateTemp(filepath.Dir(file), "."+filepath.Base(file)+"-*") // for its owner only
	if err != nil {
		return 0, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	n, err = io.Copy(f, body)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return 0, err
	}
	return n, os.Rename(f.Name(), file)
}

// offline are the settings of commands that work on a data directory while no
// server uses it.
type offline struct{ dataDir, name string }

func (o *offline) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.dataDir, "data-dir", "", "directory of the store; no server may be using it")
	cmd.Flags().StringVar(&o.name, "name", "", "name of the server; default: the one that the data has, or the host's")
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if o.dataDir == "" {
			return misused("--data-dir is needed; see %s --help", cmd.CommandPath())
		}
		return run(cmd, args)
	}
}

// server is the name of the server that the directory is for.
func (o *offline) server() string {
	if o.name != "" {
		return o.name
	}
	if id, err := store.ReadIdentity(o.dataDir); err == nil && id.Name != "" {
		return id.Name
	}
	host, _ := os.Hostname()
	return host
}

func quiet() *slog.Logger {
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

func restoreCommand() *cobra.Command {
	var o offline
	cmd := &cobra.Command{
		Use:   "restore FILE --data-dir DIR",
		Short: "Make the store of a new cluster of a backup",
		Long: `It is a cluster of one server, with another id and a later epoch, so that switches
obey it and servers of the old cluster don't mix with it. Start the server on the
directory; others join it with empty directories (--join).`,
		Args: arguments("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			f, err := os.Open(args[0])
			if err != nil {
				return fmt.Errorf("restore: %w", err)
			}
			defer func() { _ = f.Close() }()
			r, err := store.Restore(cmd.Context(), f, store.RestoreConfig{Dir: o.dataDir, Name: o.server(), Logger: quiet()})
			if err != nil {
				return fmt.Errorf("restore %s: %w", args[0], err)
			}
			return told(cmd.OutOrStdout(), r)
		},
	}
	o.flags(cmd)
	return cmd
}

func recoverCommand() *cobra.Command {
	var o offline
	var force bool
	cmd := &cobra.Command{
		Use:   "recover --force-new --data-dir DIR",
		Short: "Make a cluster of one out of one server's data",
		Long: `The last resort when most servers are gone for good. Writes that this server had not
heard of are lost. The other servers can't come back: they have to be emptied and
join anew. Take the server that had the least lag. The old data stays in the directory
as etcd.replaced-….`,
		Args: arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !force {
				return misused("the other servers' data is given up by this; say so with --force-new")
			}
			r, err := store.Recover(cmd.Context(), store.Config{Dir: o.dataDir, Name: o.server(), Logger: quiet()})
			if err != nil {
				return fmt.Errorf("recover: %w", err)
			}
			return told(cmd.OutOrStdout(), r)
		},
	}
	o.flags(cmd)
	cmd.Flags().BoolVar(&force, "force-new", false, "give up what the other servers have")
	return cmd
}

// told says what became of a backup.
func told(out io.Writer, r store.Restored) error {
	_, err := fmt.Fprintf(out, "A new cluster %s with epoch %d, from the data of cluster %s at revision %d (%s). Start the server on it.\n",
		r.ClusterID, r.Epoch, r.Backup.ClusterID, r.Backup.Revision, r.Backup.Time.Format(time.RFC3339))
	return err
}
