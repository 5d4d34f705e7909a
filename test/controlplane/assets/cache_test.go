// SPDX-License-Identifier: Apache-2.0

package assets

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/clusterset-dns/clusterset-dns/test/controlplane/process"
)

// helperVariable makes the test binary a program that builds into the directory that it names.
const helperVariable = "ASSETS_TEST_HELPER"

func TestMain(m *testing.M) {
	if root := os.Getenv(helperVariable); root != "" {
		cache, err := smallCache(root)
		if err == nil {
			err = cache.fill(context.Background(), os.Stderr, []Program{Etcd, Kwok})
		}
		if err != nil {
			panic(err)
		}
		return
	}
	os.Exit(m.Run())
}

// smallModule is built in seconds, also where the toolchain has nothing cached.
var smallModule = map[string]string{
	"source/go.mod":        "module example.com/programs\n\ngo 1.26\n",
	"source/store/main.go": "package main\n\nimport \"fmt\"\n\nfunc main() { fmt.Println(\"store\") }\n",
	"source/play/main.go":  "package main\n\nimport \"fmt\"\n\nfunc main() { fmt.Println(\"play\") }\n",
}

// smallCache is a cache below root for the small module there.
func smallCache(root string) (*cache, error) {
	tie, err := filepath.Abs("tie")
	return &cache{directory: filepath.Join(root, "cache", "key"), recipe: recipe{
		source:   filepath.Join(root, "source"),
		packages: map[Program]string{Etcd: "example.com/programs/store", Kwok: "example.com/programs/play"},
		tie:      tie,
	}}, errors.Join(err, os.MkdirAll(filepath.Join(root, "cache"), 0o755))
}

func newSmallCache(t *testing.T) (*cache, string) {
	t.Helper()
	root := writeFiles(t, smallModule)
	cache, err := smallCache(root)
	if err != nil {
		t.Fatal(err)
	}
	return cache, root
}

// listCache is what there is in the cache: of the key itself, its programs, sorted.
func listCache(t *testing.T, c *cache) string {
	t.Helper()
	var found []string
	for _, pattern := range []string{"*", "key/*"} {
		paths, err := fs.Glob(os.DirFS(filepath.Dir(c.directory)), pattern)
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, paths...)
	}
	slices.Sort(found)
	return strings.Join(found, " ")
}

func TestFillBuildsOnceAndOnlyWhatIsMissing(t *testing.T) {
	cache, _ := newSmallCache(t)
	if err := cache.fill(t.Context(), &bytes.Buffer{}, []Program{Etcd}); err != nil {
		t.Fatal(err)
	}
	if got, want := listCache(t, cache), "key key.lock key/etcd"; got != want {
		t.Errorf("after the first build: %s, want %s", got, want)
	}
	before, err := os.Stat(filepath.Join(cache.directory, "etcd"))
	if err != nil {
		t.Fatal(err)
	}

	var group sync.WaitGroup
	outputs := make([]bytes.Buffer, 3)
	for i := range outputs {
		group.Go(func() {
			if err := cache.fill(t.Context(), &outputs[i], []Program{Etcd, Kwok}); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if got, want := listCache(t, cache), "key key.lock key/etcd key/kwok"; got != want {
		t.Errorf("after all builds: %s, want %s", got, want)
	}
	built := 0
	for i := range outputs {
		built += strings.Count(outputs[i].String(), "built kwok\n")
	}
	if built != 1 {
		t.Errorf("%d of 3 have built", built)
	}
	if after, err := os.Stat(filepath.Join(cache.directory, "etcd")); err != nil || !os.SameFile(before, after) {
		t.Errorf("a program that was there is built again: %v", err)
	}
	output, err := exec.Command(filepath.Join(cache.directory, "kwok")).Output()
	if err != nil || string(output) != "play\n" {
		t.Errorf("the built program says %q, %v", output, err)
	}
}

// A build that is killed leaves no process and nothing that counts as built, and the next one puts it right.
func TestFillThatIsKilled(t *testing.T) {
	cache, root := newSmallCache(t)
	helper := exec.Command(os.Args[0])
	// With an empty cache of its own the build takes its time.
	helper.Env = append(os.Environ(), helperVariable+"="+root, "GOCACHE="+filepath.Join(root, "gocache"))
	if err := process.StartTied(helper); err != nil {
		t.Fatal(err)
	}
	await(t, "the go command and a compiler", func() bool { return toolchain(t, cache) > 1 })
	if err := helper.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = helper.Wait()
	await(t, "the end of the build's processes", func() bool { return toolchain(t, cache) == 0 })
	if got, want := listCache(t, cache), "key key.building key.lock"; got != want {
		t.Errorf("after the kill: %s, want %s", got, want)
	}

	if err := cache.fill(t.Context(), &bytes.Buffer{}, []Program{Etcd, Kwok}); err != nil {
		t.Fatal(err)
	}
	if got, want := listCache(t, cache), "key key.lock key/etcd key/kwok"; got != want {
		t.Errorf("after the next build: %s, want %s", got, want)
	}
}

func await(t *testing.T, what string, reached func() bool) {
	t.Helper()
	for deadline := time.After(time.Minute); !reached(); {
		select {
		case <-deadline:
			t.Fatalf("wait for %s: not within a minute", what)
		case <-time.After(time.Millisecond):
		}
	}
}

// toolchain counts the processes of the Go toolchain that build for the cache, which their environment says.
func toolchain(t *testing.T, c *cache) (count int) {
	t.Helper()
	environments, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range environments {
		if environment, err := os.ReadFile(file); err == nil && bytes.Contains(environment, []byte("GOTMPDIR="+c.directory+building)) {
			count++
		}
	}
	return count
}
