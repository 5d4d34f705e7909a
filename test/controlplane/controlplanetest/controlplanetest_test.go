// SPDX-License-Identifier: Apache-2.0

package controlplanetest_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/clusterset-dns/clusterset-dns/test/controlplane"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/controlplanetest"
)

func TestMain(m *testing.M) { controlplanetest.Main(m) }

// recorder is a test whose failure is what is expected.
type recorder struct {
	testing.TB
	artifacts string
	cleanups  []func()
	errors    []string
	logs      []string
}

func (r *recorder) Cleanup(f func())           { r.cleanups = append(r.cleanups, f) }
func (r *recorder) Failed() bool               { return len(r.errors) > 0 }
func (r *recorder) ArtifactDir() string        { return r.artifacts }
func (r *recorder) Error(args ...any)          { r.errors = append(r.errors, fmt.Sprint(args...)) }
func (r *recorder) Logf(f string, args ...any) { r.logs = append(r.logs, fmt.Sprintf(f, args...)) }

// end does what the end of a test does.
func (r *recorder) end() {
	for _, cleanup := range slices.Backward(r.cleanups) {
		cleanup()
	}
}

func TestUnexpectedEndFailsTheTest(t *testing.T) {
	t.Parallel()
	test := &recorder{TB: t, artifacts: t.TempDir()}
	cluster := controlplanetest.Start(test, controlplane.Options{Name: "east", Zones: []string{}})[0]
	controllers := cluster.Controllers()
	if err := syscall.Kill(controllers.PID(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for deadline := time.After(20 * time.Second); controllers.Err() == nil; {
		select {
		case <-deadline:
			t.Fatal("it does not end")
		case <-time.After(time.Millisecond):
		}
	}
	test.end()
	if len(test.errors) != 1 || !strings.Contains(test.errors[0], "east's controllers") || !strings.Contains(test.errors[0], "signal: killed") {
		t.Errorf("the test fails with %q", test.errors)
	}
	if len(test.logs) != 3 {
		t.Errorf("the failed test shows %d logs, want one of each component: %q", len(test.logs), test.logs)
	}
	kept, err := filepath.Glob(filepath.Join(test.artifacts, "east-*.log"))
	if err != nil || len(kept) != 3 {
		t.Errorf("the failed test keeps %q, %v", kept, err)
	}
	if _, err := os.Stat(cluster.Directory()); err == nil {
		t.Error("the cluster's directory is there after the test")
	}
}

func TestGoodTestIsSilent(t *testing.T) {
	t.Parallel()
	test := &recorder{TB: t}
	cluster := controlplanetest.Start(test, controlplane.Options{Name: "west", Zones: []string{}})[0]
	if err := cluster.Controllers().Kill(); err != nil {
		t.Fatal(err)
	}
	test.end()
	if len(test.errors) > 0 || len(test.logs) > 0 {
		t.Errorf("errors %q, logs %q", test.errors, test.logs)
	}
	if _, err := cluster.Remote("east"); err == nil {
		t.Error("the cluster works after the end of the test")
	}
	if err := cluster.Controllers().Start(t.Context()); err == nil {
		t.Error("a component starts after the end of the test")
	}
}

// shared is one cluster for both of the tests below.
var shared = controlplanetest.Shared(controlplane.Options{Name: "shared", Zones: []string{}})

// seen are the addresses of the shared cluster.
var seen = make(chan string, 2)

func TestSharedOnce(t *testing.T) {
	for range 2 {
		t.Run("a test", func(t *testing.T) { seen <- shared(t)[0].URL() })
	}
	if first, second := <-seen, <-seen; first != second {
		t.Errorf("two clusters are shared: %s, %s", first, second)
	}
}
