// SPDX-License-Identifier: Apache-2.0

// Package controlplanetest starts control planes for tests. They stop with the test. A failing test shows the ends of
// their logs.
//
// A package that uses it must call Main in its TestMain. Because a start takes seconds, a test that changes only its
// own namespaces should use clusters that the package shares; a test that breaks clusters should start its own.
package controlplanetest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/clusterset-dns/clusterset-dns/test/clusterset"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/process"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/programs"
	"github.com/clusterset-dns/clusterset-dns/test/steps"
)

// Main runs the tests of a package and ends the process. It ties the process to its parent, so that killing `go test`
// leaves nothing running, and stops the shared clusters.
func Main(m *testing.M) {
	if err := process.TieToParent(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	if err := stopShared(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// Start starts one cluster per element of options, in parallel. They stop when the test ends. A component that ends
// unexpectedly fails the test.
func Start(t testing.TB, options ...controlplane.Options) []*controlplane.Cluster {
	clusters, err := controlplane.StartAll(t.Context(), options...)
	Must(t, err)
	t.Cleanup(func() {
		if err := controlplane.StopAll(clusters...); err != nil {
			t.Error(err)
		}
	})
	watch(t, clusters)
	return clusters
}

// shared are the clusters that Main stops.
var shared struct {
	sync.Mutex
	clusters []*controlplane.Cluster
}

// Shared returns a function that returns the same clusters, one per element of options, to all tests of the package.
// The first call starts them, and Main stops them. A test that breaks such a cluster must repair it before it ends.
func Shared(options ...controlplane.Options) func(testing.TB) []*controlplane.Cluster {
	start := sync.OnceValues(func() ([]*controlplane.Cluster, error) {
		// The context must not end with the test that calls this first.
		clusters, err := controlplane.StartAll(context.Background(), options...)
		shared.Lock()
		defer shared.Unlock()
		shared.clusters = append(shared.clusters, clusters...)
		return clusters, err
	})
	return func(t testing.TB) []*controlplane.Cluster {
		clusters, err := start()
		Must(t, err)
		watch(t, clusters)
		return clusters
	}
}

func stopShared() error {
	shared.Lock()
	defer shared.Unlock()
	return controlplane.StopAll(shared.clusters...)
}

// watch makes the test report problems of the clusters when it ends.
func watch(t testing.TB, clusters []*controlplane.Cluster) {
	t.Cleanup(func() {
		for _, cluster := range clusters {
			if err := cluster.Err(); err != nil {
				t.Error(err)
			}
			if t.Failed() {
				t.Log(cluster.Logs())
			}
		}
	})
}

// End kills a process when the test ends. It fails the test if the process ended by itself; a failing test shows its log.
func End(t testing.TB, p *process.Process) {
	t.Cleanup(func() {
		if err := errors.Join(p.Err(), p.Kill()); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("the log of %s ends:\n%s", p.Name(), p.LogTail(8192))
		}
	})
}

// Run runs a process until the test ends, see End.
func Run(t testing.TB, spec process.Spec) *process.Process {
	started, err := process.Start(spec)
	Must(t, err)
	End(t, started)
	return started
}

// RunController runs the controller at path, with the rights of its account in a cluster, until the test ends.
func RunController(t testing.TB, cluster *clusterset.Cluster, path string, flags ...string) *clusterset.Program {
	running, err := cluster.StartController(t.Context(), path, flags...)
	Must(t, err)
	End(t, running.Process)
	return running
}

// RunCoreDNS runs a CoreDNS of this checkout next to a cluster until the test ends, see StartCorefile, and returns its
// address.
func RunCoreDNS(t testing.TB, cluster *clusterset.Cluster, corefile string) string {
	bin, err := programs.Build(t.Context(), "cmd/coredns")
	Must(t, err)
	running, err := cluster.StartCorefile(filepath.Join(bin, "coredns"), corefile)
	Must(t, err)
	End(t, running.Process)
	return running.Address
}

// patience limits each wait for a state: on a busy machine databases need minutes. Successful waits are shorter.
const patience = 3 * time.Minute

// Eventually waits until check returns nil, and returns the time that this took. The interval grows with the waiting time.
func Eventually(t testing.TB, what string, check func(context.Context) error) time.Duration {
	t.Helper()
	started := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var last error
	for pause := 20 * time.Millisecond; ; pause = min(pause*3/2, time.Second) {
		err := check(ctx)
		if err == nil {
			return time.Since(started)
		}
		if ctx.Err() == nil || last == nil {
			last = err // rather than the error of the deadline
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s: not within %s: %v%s", what, patience, last, steps.Here())
		case <-time.After(pause):
		}
	}
}

// block matches a code block of a page, which may be indented in a list.
var block = regexp.MustCompile("(?ms)^( *)```([a-z]+)\n(.*?)^ *```$")

// Blocks returns the code blocks of a Markdown text in a language, or in any language if it is empty, in order.
func Blocks(text, language string) (all []string) {
	for _, match := range block.FindAllStringSubmatch(text, -1) {
		if language == "" || language == match[2] {
			all = append(all, strings.TrimPrefix(strings.ReplaceAll("\n"+match[3], "\n"+match[1], "\n"), "\n"))
		}
	}
	return all
}

// Documented returns the only code block with a text in a page of docs/.
func Documented(t testing.TB, page, text string) string {
	t.Helper()
	root, err := programs.Checkout()
	Must(t, err)
	content, err := os.ReadFile(filepath.Join(root, "docs", page))
	Must(t, err)
	for _, each := range Blocks(string(content), "") {
		if strings.Contains(each, text) {
			return each
		}
	}
	t.Fatalf("%s has no block with %q", page, text)
	return ""
}

// Must ends the test if there is an error.
func Must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%v%s", err, steps.Here())
	}
}
