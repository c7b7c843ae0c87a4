package main

import (
	"strings"
	"testing"
)

func TestMistakesInACallAreNamed(t *testing.T) {
	for _, c := range []struct {
		call string
		want []string
	}{
		{"", []string{"needs a subcommand", "server", "cluster", "adopt"}},
		{"servr", []string{`no subcommand "servr"`, "server"}},
		{"cluster", []string{"kvnet cluster needs a subcommand", "members", "restore"}},
		{"cluster membrs", []string{`kvnet cluster has no subcommand "membrs"`, "members", "raise-epoch"}},
		{"completion", []string{"needs a subcommand", "bash"}},
		{"cluster members --colour", []string{"unknown flag: --colour"}},
		{"cluster members --url nonsense", []string{"--url", `"nonsense"`, "http://"}},
		{"cluster members all", []string{`"all" is one argument too many`}},
		{"cluster remove", []string{"kvnet cluster remove needs NAME"}},
		{"cluster backup", []string{"kvnet cluster backup needs FILE"}},
		{"cluster restore --data-dir d", []string{"kvnet cluster restore needs FILE"}},
		{"cluster restore f", []string{"--data-dir is needed"}},
		{"cluster recover --force-new", []string{"--data-dir is needed"}},
		{"server --bootstrap-expect three", []string{`--bootstrap-expect: "three" is no whole number`}},
		{"server --snat-zone-base 65536", []string{`--snat-zone-base: "65536" is no whole number from 0 to 65535`}},
		{"adopt --cookie zz", []string{"--cookie", `"zz" is no 64-bit number`}},
		{"adopt --cookie 1/zz", []string{"--cookie", `mask "zz" is no 64-bit number`}},
		{"adopt --cookie 1 --switch s1", []string{"--switch", "s1"}},
		{"adopt --cookie 1 --url nonsense", []string{"--url", `"nonsense"`}},
	} {
		t.Run(c.call, func(t *testing.T) {
			out, err := kvnet(t, strings.Fields(c.call)...)
			if exitCode(err) != 2 {
				t.Fatalf("exit code %d: %v\n%s", exitCode(err), err, out)
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q does not say %q", err, want)
				}
			}
			if strings.Contains(err.Error(), "strconv") {
				t.Errorf("%q is not for users", err)
			}
		})
	}
	for _, call := range []string{"--help", "cluster --help", "cluster members --help", "--version"} {
		if out, err := kvnet(t, strings.Fields(call)...); err != nil || out == "" {
			t.Errorf("%s: %v\n%s", call, err, out)
		}
	}
}
