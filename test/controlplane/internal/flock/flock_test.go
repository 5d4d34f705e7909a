// SPDX-License-Identifier: Apache-2.0

package flock_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/clusterset-dns/clusterset-dns/test/controlplane/internal/flock"
)

func TestTry(t *testing.T) {
	name := filepath.Join(t.TempDir(), "lock")
	if _, err := flock.TryExisting(name); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the lock of a file that is not there: %v", err)
	}
	unlock, err := flock.Try(name)
	if err != nil {
		t.Fatal(err)
	}
	renamed := name + ".renamed"
	if err := os.Rename(name, renamed); err != nil {
		t.Fatal(err)
	}
	for _, try := range []func(string) (func(), error){flock.Try, flock.TryExisting} {
		if _, err := try(renamed); !errors.Is(err, flock.ErrHeld) {
			t.Errorf("a lock that is held: %v", err)
		}
	}
	unlock()
	again, err := flock.TryExisting(renamed)
	if err != nil {
		t.Fatalf("a lock that was given back: %v", err)
	}
	again()
}
