// SPDX-License-Identifier: Apache-2.0

// Package controlplanetest starts control planes for tests: they stop with the test, and a test that fails
// shows how their logs end.
//
// A package that uses it calls Main in its TestMain. A test that changes nothing but namespaces of its own
// takes clusters that are shared in the package, since a start takes seconds; one that breaks clusters starts its own.
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

// Main runs the tests of a package and ends the process. It ties the process to its parent, so that
// nothing is left where `go test` is killed, and stops the shared clusters.
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

// Start starts one cluster for each of the options, all at once. They stop when the test ends. A component that
// ends without being told to fails the test.
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

// Shared returns a function that gives each test of the package the same clusters, one for each of the options. The
// first test that asks starts them, and Main stops them. A test that breaks such a cluster repairs it before it ends.
func Shared(options ...controlplane.Options) func(testing.TB) []*controlplane.Cluster {
	start := sync.OnceValues(func() ([]*controlplane.Cluster, error) {
		// They outlive the test that happens to be the first.
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

// watch makes the end of the test tell what is wrong with the clusters.
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

// End has a process end with the test, which fails if that ended by itself, and shows the end of its log if it fails.
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

// Run runs a process until the test ends, as End says.
func Run(t testing.TB, spec process.Spec) *process.Process {
	started, err := process.Start(spec)
	Must(t, err)
	End(t, started)
	return started
}

// RunController runs a controller, of the given path, with the rights of its account in a cluster, until the test ends.
func RunController(t testing.TB, cluster clusterset.Cluster, path string, flags ...string) *clusterset.Program {
	credential, err := clusterset.WriteCredential(t.Context(), cluster, clusterset.Namespace, "clusterset-controller")
	Must(t, err)
	running, err := clusterset.StartController(cluster, path, credential, flags...)
	Must(t, err)
	End(t, running.Process)
	return running
}

// RunCoreDNS runs a CoreDNS of this tree beside a cluster until the test ends, as clusterset.StartCorefile does, and returns its
// address.
func RunCoreDNS(t testing.TB, cluster clusterset.Cluster, corefile string) string {
	bin, err := programs.Build(t.Context(), "cmd/coredns")
	Must(t, err)
	running, err := clusterset.StartCorefile(cluster, filepath.Join(bin, "coredns"), corefile)
	Must(t, err)
	End(t, running.Process)
	return running.Address
}

// patience bounds each wait for a state: on a busy machine databases take minutes. Nothing waits that long on purpose.
const patience = 3 * time.Minute

// Eventually waits until check is nil, and returns how long that took. What takes long is looked at less often.
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
			last = err // and not that the time is up
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s: not within %s: %v%s", what, patience, last, steps.Here())
		case <-time.After(pause):
		}
	}
}

// block is one of a page, which may be in a list.
var block = regexp.MustCompile("(?ms)^( *)```([a-z]+)\n(.*?)^ *```$")

// Blocks are those of a Markdown text that are in a language, or in any if it is empty, in their order.
func Blocks(text, language string) (all []string) {
	for _, match := range block.FindAllStringSubmatch(text, -1) {
		if language == "" || language == match[2] {
			all = append(all, strings.TrimPrefix(strings.ReplaceAll("\n"+match[3], "\n"+match[1], "\n"), "\n"))
		}
	}
	return all
}

// Documented is the only block that has a text in a page of docs/.
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

// Must ends the test where there is an error.
func Must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%v%s", err, steps.Here())
	}
}
