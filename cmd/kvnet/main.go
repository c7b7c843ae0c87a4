// Command kvnet takes the place of ONOS's kubevirt-networking and kubevirt-node
// apps: one server for REST, cluster and OpenFlow, and the client commands.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

// version is set by the linker (-X main.version=…).
var version = "dev"

func main() { os.Exit(execute()) }

// execute runs the command line and returns the exit code.
func execute() int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	err := root().ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	fmt.Fprintln(os.Stderr, "kvnet: "+err.Error())
	return exitCode(err)
}

func root() *cobra.Command {
	cmd := &cobra.Command{
		Use:           "kvnet",
		Short:         "Tenant networks for KubeVirt over Open vSwitch",
		Version:       version,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	cmd.AddCommand(serverCommand(), clusterCommand(), adoptCommand())
	cmd.InitDefaultCompletionCmd() // a group, too
	refuseMistakes(cmd)
	return cmd
}
