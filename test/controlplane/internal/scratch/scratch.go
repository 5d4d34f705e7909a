// SPDX-License-Identifier: Apache-2.0

// Package scratch makes temporary directories that do not pile up: what a killed process leaves, the next one removes.
package scratch

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/clusterset-dns/clusterset-dns/test/controlplane/internal/flock"
)

const (
	// prefix begins the names of all directories.
	prefix = "clusterset-dns-"
	// owner is the file in a directory that its process holds the lock of. A directory without it is none of ours,
	// or on its way.
	owner = "owner.lock"
)

// Directory is a temporary directory of this process.
type Directory struct {
	path   string
	unlock func()
}

// Make makes a directory below os.TempDir that only the user can open, with a name that contains name. It also removes
// those that processes left which have ended.
func Make(name string) (*Directory, error) {
	sweep()
	path, err := os.MkdirTemp("", prefix+name+"-")
	if err != nil {
		return nil, fmt.Errorf("make a temporary directory: %w", err)
	}
	// The file is locked before it has its name, so that nobody sees it unlocked.
	unlock, err := flock.Try(filepath.Join(path, "new.lock"))
	if err == nil {
		err = os.Rename(filepath.Join(path, "new.lock"), filepath.Join(path, owner))
	}
	if err != nil {
		_ = os.RemoveAll(path)
		return nil, fmt.Errorf("lock a temporary directory: %w", err)
	}
	return &Directory{path: path, unlock: unlock}, nil
}

// Path is where the directory is.
func (d *Directory) Path() string { return d.path }

// Remove removes the directory with all that is in it.
func (d *Directory) Remove() error {
	defer d.unlock()
	return os.RemoveAll(d.path)
}

// sweep removes the directories whose owner has ended. What it cannot open or remove, of another user for instance, it
// leaves.
func sweep() {
	owners, err := filepath.Glob(filepath.Join(os.TempDir(), prefix+"*", owner))
	if err != nil {
		return
	}
	for _, file := range owners {
		unlock, err := flock.TryExisting(file)
		if err != nil {
			continue
		}
		_ = os.RemoveAll(filepath.Dir(file))
		unlock()
	}
}
