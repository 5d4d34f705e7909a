// SPDX-License-Identifier: Apache-2.0

package assets

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// smallModule is built in seconds, also where the toolchain has nothing cached.
var smallModule = map[string]string{
	"source/go.mod":        "module example.com/programs\n\ngo 1.26\n",
	"source/store/main.go": "package main\n\nimport \"fmt\"\n\nfunc main() { fmt.Println(\"store\") }\n",
	"source/play/main.go":  "package main\n\nimport \"fmt\"\n\nfunc main() { fmt.Println(\"play\") }\n",

	"cache/key.building/store": "half of a program",
}

// newSmallCache is a cache for the small module, in which a build was killed.
func newSmallCache(t *testing.T) *cache {
	t.Helper()
	root := writeFiles(t, smallModule)
	return &cache{directory: filepath.Join(root, "cache", "key"), recipe: recipe{
		source:   filepath.Join(root, "source"),
		packages: map[Program]string{Etcd: "example.com/programs/store", Kwok: "example.com/programs/play"},
	}}
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
	cache := newSmallCache(t)
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
