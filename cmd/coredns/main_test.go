// SPDX-License-Identifier: Apache-2.0

package main

import (
	"runtime/debug"
	"slices"
	"testing"

	"github.com/coredns/coredns/core/dnsserver"
)

func TestMulticlusterComesBeforeKubernetes(t *testing.T) {
	all := directives(dnsserver.Directives)
	at := slices.Index(all, "multicluster")
	if at < 0 || all[at+1] != "kubernetes" {
		t.Errorf("multicluster is not before kubernetes in %v", all)
	}
	if !slices.Equal(slices.Delete(slices.Clone(all), at, at+1), dnsserver.Directives) {
		t.Errorf("%v are not the stock directives and one more", all)
	}
}

func TestEveryDirectiveHasItsPlugin(t *testing.T) {
	all := directives(dnsserver.Directives)
	if got := compiledIn(all); !slices.Equal(got, all) {
		t.Errorf("plugins are compiled in for %v alone, want %v", got, all)
	}
	if got := compiledIn([]string{"errors", "nonesuch"}); !slices.Equal(got, []string{"errors"}) {
		t.Errorf("a directive without a plugin is kept: %v", got)
	}
}

func TestVersionOf(t *testing.T) {
	info := func(version, revision string) func() (*debug.BuildInfo, bool) {
		return func() (*debug.BuildInfo, bool) {
			i := &debug.BuildInfo{Main: debug.Module{Version: version}}
			if revision != "" {
				i.Settings = []debug.BuildSetting{{Key: "vcs.revision", Value: revision}}
			}
			return i, true
		}
	}
	tests := []struct {
		name, set string
		read      func() (*debug.BuildInfo, bool)
		want      string
	}{
		{"set by the linker", "v1.0.0", info("v0.9.0", "abc"), "v1.0.0"},
		{"installed by the go command", "", info("v0.9.0", ""), "v0.9.0"},
		{"built in a checkout", "", info("(devel)", "abc"), "abc"},
		{"built from files alone", "", info("", ""), "unknown"},
		{"built without modules", "", func() (*debug.BuildInfo, bool) { return nil, false }, "unknown"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			if got := versionOf(tc.set, tc.read); got != tc.want {
				t.Errorf("the version is %q, want %q", got, tc.want)
			}
		})
	}
}
