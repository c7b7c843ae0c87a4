package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"gopkg.in/yaml.v3"

	"kvnet/cluster/gossip"
)

// config are the settings of `kvnet server`. Every flag can also stand in the
// YAML file that --config names, under the flag's name, and in the environment as
// KVNET_ and the name in capitals with underscores. A flag wins over the
// environment, the environment over the file.
type config struct {
	file    string
	name    string
	dataDir string

	restListen, openflowListen, metricsListen string
	gossipListen, advertise, storeListen      string
	join                                      []string
	bootstrapExpect                           int
	gossipKeyFile, gossipPreset               string
	// gossipGiven says that the gossip was configured, so that a server that
	// can't listen for it must not start.
	gossipGiven                              bool
	storePeerCert, storePeerKey, storePeerCA string
	storeEndpoints                           []string

	usersFile            string
	allowDefaultAccounts bool
	kubeconfig           string
	manageBridges        bool

	auditInterval, fullAuditInterval time.Duration
	snatZoneBase                     uint16

	restTLSCert, restTLSKey                                           string
	openflowTLSListen, openflowTLSCert, openflowTLSKey, openflowTLSCA string

	logLevel string
}

func (c *config) flags(f *pflag.FlagSet) {
	host, err := os.Hostname()
	if err != nil || host == "" {
		host = "kvnet"
	}
	f.StringVar(&c.file, "config", "", "YAML file with any of these settings")
	f.StringVar(&c.name, "name", host, "name of this server in the cluster")
	f.StringVar(&c.dataDir, "data-dir", "kvnet-data", "directory of the store")
	f.StringVar(&c.restListen, "rest-listen", "127.0.0.1:8181", "address of REST")
	f.StringVar(&c.openflowListen, "openflow-listen", "0.0.0.0:6653", "address for switches; -: none, so that all use TLS")
	f.StringVar(&c.metricsListen, "metrics-listen", "127.0.0.1:9300", "address of the metrics")
	f.StringVar(&c.gossipListen, "gossip-listen", "127.0.0.1:7946", "address of the gossip")
	f.StringVar(&c.advertise, "advertise", "", "host name or address by which other servers reach this one")
	f.StringSliceVar(&c.join, "join", nil, "gossip address of another server; may be repeated")
	f.IntVar(&c.bootstrapExpect, "bootstrap-expect", 0, "number of servers that found a cluster together")
	f.StringVar(&c.gossipKeyFile, "gossip-key-file", "", "file with one line: base64 of 32 bytes")
	f.StringVar(&c.storeListen, "store-listen", "127.0.0.1:2380", "address of the store for other servers")
	f.StringVar(&c.storePeerCert, "store-peer-cert", "", "certificate file for the stores of other servers (PEM); default: one made from the gossip key")
	f.StringVar(&c.storePeerKey, "store-peer-key", "", "key file of that certificate (PEM)")
	f.StringVar(&c.storePeerCA, "store-peer-ca", "", "file of the authority that signs the servers' certificates (PEM)")
	f.StringSliceVar(&c.storeEndpoints, "store-endpoints", nil, "URLs of an external etcd cluster, instead of the embedded store")
	f.StringVar(&c.usersFile, "users-file", "", "file of accounts: name:bcrypt-hash:role[,role] per line")
	f.BoolVar(&c.allowDefaultAccounts, "allow-default-accounts", false, "accept onos:rocks and guest:guest also where REST listens beyond loopback")
	f.StringVar(&c.kubeconfig, "kubeconfig", "", "kubeconfig of the cluster to watch")
	f.BoolVar(&c.manageBridges, "manage-bridges", true, "make bridges and ports by OVSDB")
	f.DurationVar(&c.auditInterval, "audit-interval", 30*time.Second, "time between two comparisons of cookies and groups")
	f.DurationVar(&c.fullAuditInterval, "full-audit-interval", 5*time.Minute, "time between two comparisons of what the rules do")
	f.Uint16Var(&c.snatZoneBase, "snat-zone-base", 0, "number below the first conntrack zone for SNAT")
	f.StringVar(&c.gossipPreset, "gossip-preset", "lan", "timing of the gossip: lan or rack")
	f.StringVar(&c.restTLSCert, "rest-tls-cert", "", "file of REST's certificate, with its chain (PEM); with it REST speaks HTTPS")
	f.StringVar(&c.restTLSKey, "rest-tls-key", "", "file of the certificate's key (PEM)")
	f.StringVar(&c.openflowTLSListen, "openflow-tls-listen", "", "address for switches that use TLS")
	f.StringVar(&c.openflowTLSCert, "openflow-tls-cert", "", "file of the certificate shown to switches, with its chain (PEM)")
	f.StringVar(&c.openflowTLSKey, "openflow-tls-key", "", "file of that certificate's key (PEM)")
	f.StringVar(&c.openflowTLSCA, "openflow-tls-ca", "", "file of the authority that signs the switches' certificates (PEM)")
	f.StringVar(&c.logLevel, "log-level", "info", "debug, info, warn or error")
}

// load fills in what the environment and the file say, for flags that the caller
// has not set.
func (c *config) load(cmd *cobra.Command) error {
	f := cmd.Flags()
	set := func(fl *pflag.Flag, value, where string) error {
		if err := f.Set(fl.Name, value); err != nil {
			return misused("%s: %s: %s", where, fl.Name, wrongValue(fl, value))
		}
		return nil
	}
	given := map[string]bool{}
	f.Visit(func(fl *pflag.Flag) { given[fl.Name] = true })
	var errs []error
	f.VisitAll(func(fl *pflag.Flag) {
		env := variable(fl)
		if v, ok := os.LookupEnv(env); ok && !given[fl.Name] && fl.Name != "help" {
			given[fl.Name] = true
			errs = append(errs, set(fl, v, env))
		}
	})
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if c.file == "" {
		return c.check(f)
	}
	b, err := os.ReadFile(c.file)
	if err != nil {
		return misused("read the settings: %w", err)
	}
	var values map[string]any
	if err := yaml.Unmarshal(b, &values); err != nil {
		return misused("read the settings of %s: %w", c.file, err)
	}
	for name, v := range values {
		fl := f.Lookup(name)
		if fl == nil || name == "config" || name == "help" {
			errs = append(errs, misused("%s: there is no setting %q", c.file, name))
			continue
		}
		if given[name] {
			continue
		}
		list, ok := v.([]any)
		if !ok {
			list = []any{v}
		}
		for _, x := range list {
			errs = append(errs, set(fl, fmt.Sprint(x), c.file))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return c.check(f)
}

// check refuses settings that can't work, in words.
func (c *config) check(f *pflag.FlagSet) error {
	for _, a := range []struct{ flag, addr string }{
		{"rest-listen", c.restListen}, {"openflow-listen", c.openflowListen}, {"metrics-listen", c.metricsListen},
		{"gossip-listen", c.gossipListen}, {"store-listen", c.storeListen}, {"openflow-tls-listen", c.openflowTLSListen},
	} {
		off := a.addr == "" && a.flag == "openflow-tls-listen" ||
			a.addr == "-" && (a.flag == "metrics-listen" || a.flag == "openflow-listen")
		if off {
			continue
		}
		if _, _, err := net.SplitHostPort(a.addr); err != nil {
			return misused("--%s: %q is no address of the form HOST:PORT: %w", a.flag, a.addr, err)
		}
	}
	if err := gossip.CheckName(c.name); err != nil {
		return misused("--name: %w", err)
	}
	if err := checkEnvironment(f, os.Environ()); err != nil {
		return usageError{err}
	}
	switch {
	case c.auditInterval < 100*time.Millisecond || c.fullAuditInterval < 100*time.Millisecond:
		return misused("--audit-interval and --full-audit-interval must be at least 100ms")
	case c.gossipPreset != "lan" && c.gossipPreset != "rack":
		return misused("--gossip-preset: %q is neither lan nor rack", c.gossipPreset)
	case c.snatZoneBase == 0xffff:
		return misused("--snat-zone-base: no zone is left above %d", c.snatZoneBase)
	case (c.restTLSCert == "") != (c.restTLSKey == ""):
		return misused("--rest-tls-cert and --rest-tls-key need each other")
	}
	for _, name := range []string{"gossip-listen", "gossip-key-file", "advertise"} {
		c.gossipGiven = c.gossipGiven || f.Changed(name)
	}
	if err := errors.Join(c.checkCluster(), c.checkOpenFlow()); err != nil {
		return usageError{err}
	}
	abs, err := filepath.Abs(c.dataDir)
	if err != nil {
		return misused("--data-dir: %w", err)
	}
	c.dataDir = abs
	return nil
}

// notYet names the settings that were given and whose part of kvnet does not
// exist yet.
func (c *config) notYet(f *pflag.FlagSet) []string {
	var out []string
	if fl := f.Lookup("manage-bridges"); c.manageBridges && fl != nil && fl.Changed { // its default is no wish
		out = append(out, "--manage-bridges")
	}
	if fl := f.Lookup("kubeconfig"); fl != nil && fl.Changed {
		out = append(out, "--kubeconfig")
	}
	return out
}
