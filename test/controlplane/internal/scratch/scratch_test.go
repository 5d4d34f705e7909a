// SPDX-License-Identifier: Apache-2.0

package scratch_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/clusterset-dns/clusterset-dns/test/controlplane/internal/scratch"
)

// helperVariable makes the test binary a program that makes a directory and ends without removing it.
const helperVariable = "SCRATCH_TEST_HELPER"

func TestMain(m *testing.M) {
	if os.Getenv(helperVariable) != "" {
		if _, err := scratch.Make("left"); err != nil {
			panic(err)
		}
		return
	}
	os.Exit(m.Run())
}

// list names what is in the temporary folder, without the random ends of the names.
func list(t *testing.T) string {
	t.Helper()
	entries, err := os.ReadDir(os.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range entries {
		names = append(names, strings.TrimRight(entry.Name(), "0123456789"))
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

func expect(t *testing.T, when, want string) {
	t.Helper()
	if got := list(t); got != want {
		t.Errorf("%s there is %q, want %q", when, got, want)
	}
}

func TestMakeRemovesWhatOthersLeft(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	for range 2 {
		helper := exec.Command(os.Args[0])
		helper.Env = append(os.Environ(), helperVariable+"=1")
		if output, err := helper.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, output)
		}
	}
	// The second has removed what the first left. Strangers' directories stay.
	if err := os.Mkdir(filepath.Join(os.TempDir(), "clusterset-dns-foreign"), 0o700); err != nil {
		t.Fatal(err)
	}
	expect(t, "before", "clusterset-dns-foreign clusterset-dns-left-")

	east, err := scratch.Make("east")
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(east.Path()); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the directory is %v, %v", info, err)
	}
	expect(t, "after one more", "clusterset-dns-east- clusterset-dns-foreign")
	west, err := scratch.Make("west")
	if err != nil {
		t.Fatal(err)
	}
	expect(t, "after another", "clusterset-dns-east- clusterset-dns-foreign clusterset-dns-west-")

	for _, directory := range []*scratch.Directory{east, west} {
		if err := os.WriteFile(filepath.Join(directory.Path(), "file"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := directory.Remove(); err != nil {
			t.Error(err)
		}
	}
	expect(t, "in the end", "clusterset-dns-foreign")
}

func TestMakeFails(t *testing.T) {
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "missing"))
	if _, err := scratch.Make("east"); err == nil {
		t.Error("a directory is made where there is no temporary folder")
	}
}
