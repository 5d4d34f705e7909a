// SPDX-License-Identifier: Apache-2.0

package programs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestBuild holds that a program which is up to date is not written again, also where many want it at once.
func TestBuild(t *testing.T) {
	const program = "test/controlplane/programs/testdata/hello"
	bin, err := Build(t.Context(), program)
	if err != nil {
		t.Fatal(err)
	}
	// While it is open, no other file can be taken for it.
	first, err := os.Open(filepath.Join(bin, "hello"))
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	before, err := first.Stat()
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	for range 3 {
		go func() {
			_, err := Build(t.Context(), program)
			done <- err
		}()
	}
	for range 3 {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	after, err := os.Stat(filepath.Join(bin, "hello"))
	if err != nil {
		t.Fatal(err)
	}
	if !os.SameFile(before, after) {
		t.Error("a program that is up to date was written again")
	}
}

func TestBuildOfWhatIsNotThere(t *testing.T) {
	if _, err := Build(t.Context(), "test/nowhere"); err == nil || !strings.Contains(err.Error(), "test/nowhere") {
		t.Errorf("got the error %v", err)
	}
}
