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
	"source/go.mod":           "module example.com/programs\n\ngo 1.26\n",
	"source/programs/main.go": "package main\n\nimport \"os\"\n\nfunc main() { os.Stdout.WriteString(os.Args[0]) }\n",

	"cache/key.building/programs": "half of a program",
	"cache/key/etcd":              "alone",
}

// newSmallCache is a cache for the small module, in which a build was killed.
func newSmallCache(t *testing.T) *cache {
	t.Helper()
	root := writeFiles(t, smallModule)
	return &cache{
		directory: filepath.Join(root, "cache", "key"),
		recipe:    recipe{source: filepath.Join(root, "source"), packagePath: "./programs"},
	}
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

func TestFillBuildsOnce(t *testing.T) {
	cache := newSmallCache(t)
	var group sync.WaitGroup
	outputs := make([]bytes.Buffer, 3)
	for i := range outputs {
		group.Go(func() {
			if err := cache.fill(t.Context(), &outputs[i]); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	want := "key key.lock key/controllers key/etcd key/kube-apiserver key/kube-proxy key/kube-scheduler key/kubectl key/kwok key/programs"
	if got := listCache(t, cache); got != want {
		t.Errorf("after all builds: %s, want %s", got, want)
	}
	built := 0
	for i := range outputs {
		built += strings.Count(outputs[i].String(), "building 7 programs")
	}
	if built != 1 {
		t.Errorf("%d of 3 have built", built)
	}
	path := filepath.Join(cache.directory, "kwok")
	if output, err := exec.Command(path).Output(); err != nil || string(output) != path {
		t.Errorf("the built program is called %q, %v, want %s", output, err, path)
	}
}
