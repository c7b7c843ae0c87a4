package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// usageError is a mistake in the call rather than a failure.
type usageError struct{ error }

func (u usageError) Unwrap() error { return u.error }

func misused(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// exitCode is 2 for a mistake in the call, 1 for a failure.
func exitCode(err error) int {
	var u usageError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &u):
		return 2
	}
	return 1
}

// refuseMistakes makes every mistake in a call of cmd or of a command below it a usageError.
// Of itself cobra answers a wrong subcommand of a group with the group's help, as a
// success.
func refuseMistakes(cmd *cobra.Command) {
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		var wrong *pflag.InvalidValueError
		if errors.As(err, &wrong) {
			return misused("--%s: %s", wrong.GetFlag().Name, wrongValue(wrong.GetFlag(), wrong.GetValue()))
		}
		return misused("%w; see %s --help", err, cmd.CommandPath())
	})
	if !cmd.Runnable() {
		cmd.Args = cobra.ArbitraryArgs // which RunE refuses
		cmd.RunE = refuseSubcommand
	}
	for _, sub := range cmd.Commands() {
		refuseMistakes(sub)
	}
}

// refuseSubcommand is what a group of commands does when none of them was called.
func refuseSubcommand(cmd *cobra.Command, args []string) error {
	var known []string
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			known = append(known, sub.Name())
		}
	}
	if len(args) == 0 {
		return misused("%s needs a subcommand: %s", cmd.CommandPath(), strings.Join(known, ", "))
	}
	return misused("%s has no subcommand %q; there are: %s", cmd.CommandPath(), args[0], strings.Join(known, ", "))
}

// arguments wants one argument for each of the names.
func arguments(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < len(names):
			return misused("%s needs %s; see %s --help", cmd.CommandPath(), strings.Join(names[len(args):], " and "), cmd.CommandPath())
		case len(args) > len(names):
			return misused("%s: %q is one argument too many", cmd.CommandPath(), args[len(names)])
		}
		return nil
	}
}

// wrongValue says in words why a value can't be that of a flag.
func wrongValue(fl *pflag.Flag, value string) string {
	kinds := map[string]string{
		"bool":     "neither true nor false",
		"duration": "no duration such as 30s or 5m",
		"int":      "no whole number",
		"uint16":   "no whole number from 0 to 65535",
	}
	if kind, ok := kinds[fl.Value.Type()]; ok {
		return fmt.Sprintf("%q is %s", value, kind)
	}
	return fmt.Sprintf("%q can't be its value", value)
}
