// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestVolume: the volume of a Secret, which the kubelet replaces by changing the link ..data.
func TestVolume(t *testing.T) {
	path := t.TempDir()
	source := &directory{"directory:" + path, path}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	publish := func(version string, files map[string]string) {
		t.Helper()
		dir := filepath.Join(path, ".."+version)
		must(os.Mkdir(dir, 0o700))
		for name, text := range files {
			must(os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
		}
		must(os.Symlink(".."+version, filepath.Join(path, "..data_tmp")))
		must(os.Rename(filepath.Join(path, "..data_tmp"), filepath.Join(path, "..data")))
	}
	expect := func(want ...string) {
		t.Helper()
		candidates, err := source.List(t.Context())
		must(err)
		var got []string
		for _, each := range candidates {
			text := each.Cluster + " " + strings.TrimPrefix(each.Name, path) + " " + string(each.Kubeconfig)
			if each.Err != nil {
				text = each.Cluster + "!"
			}
			got = append(got, text)
		}
		if !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	expect()
	publish("1", map[string]string{"west.kubeconfig": "a", "north.registry.yaml": "b", "README": "c", ".kubeconfig": "d"})
	expect("north.registry /north.registry.yaml b", "west /west.kubeconfig a")
	publish("2", map[string]string{"west.kubeconfig": "e"})
	must(os.RemoveAll(filepath.Join(path, "..1")))
	expect("west /west.kubeconfig e")
	publish("3", map[string]string{"west.kubeconfig": strings.Repeat("x", maxBytes+1)})
	expect("west!")
	must(os.RemoveAll(filepath.Join(path, "..3")))
	if list, err := source.List(t.Context()); err == nil {
		t.Errorf("a volume without its files has %v", list)
	}
	must(os.RemoveAll(path))
	if list, err := source.List(t.Context()); err == nil {
		t.Errorf("no directory has %v", list)
	}
}

// TestFiles: a directory of plain files; what is no file is a member that is not read.
func TestFiles(t *testing.T) {
	path := t.TempDir()
	for name, text := range map[string]string{"west.kubeconfig": "a", "a_b.yml": "b"} {
		if err := os.WriteFile(filepath.Join(path, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("/dev/zero", filepath.Join(path, "zero.yaml")); err != nil {
		t.Fatal(err)
	}
	candidates, err := (&directory{path: path}).List(t.Context())
	if err != nil || len(candidates) != 3 || candidates[0].Cluster != "a_b" || candidates[2].Err == nil {
		t.Errorf("%v, %v", candidates, err)
	}
}
