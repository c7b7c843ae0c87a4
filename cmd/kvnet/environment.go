package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

const variablePrefix = "KVNET_"

// variable is the name of a setting in the environment.
func variable(fl *pflag.Flag) string {
	return variablePrefix + strings.ToUpper(strings.ReplaceAll(fl.Name, "-", "_"))
}

// notSettings are variables of clients, tests and tools, which a server may find in
// its environment.
var notSettings = []string{"KVNET_PASSWORD", "KVNET_URL", "KVNET_PROXY_URL"}

// foreign are the variables of tests and tools that have a family of names, and those
// that Kubernetes puts into every container when there is a Service "kvnet" or "kvnet-…".
var foreign = regexp.MustCompile(`^KVNET_(TEST_.*|([A-Z0-9_]+_)?BINARY|([A-Z0-9_]+_)?(SERVICE_(HOST|PORT(_[A-Z0-9_]+)?)|PORT(_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?))$`)

// checkEnvironment refuses variables that name no setting: a misspelt one would be
// ignored, and the server do something else than what was wanted.
func checkEnvironment(f *pflag.FlagSet, environ []string) error {
	known := map[string]bool{}
	f.VisitAll(func(fl *pflag.Flag) { known[variable(fl)] = true })
	var unknown []string
	for _, v := range environ {
		name, _, _ := strings.Cut(v, "=")
		if strings.HasPrefix(name, variablePrefix) && !known[name] && !slices.Contains(notSettings, name) && !foreign.MatchString(name) {
			unknown = append(unknown, name)
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	slices.Sort(unknown)
	return fmt.Errorf("the environment has %s, and there is no such setting; kvnet server --help lists them", strings.Join(unknown, ", "))
}
