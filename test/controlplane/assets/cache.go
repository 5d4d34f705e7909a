// SPDX-License-Identifier: Apache-2.0

package assets

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/clusterset-dns/clusterset-dns/test/controlplane/internal/flock"
)

// cache is the place of the programs that one set of build inputs gives.
//
//	<root>/<key>/           the programs; it gets there by a rename, once it is whole
//	<root>/<key>.building/  a build on its way, of the one who holds the lock
//	<root>/<key>.lock       locked (flock) while somebody builds; never removed
type cache struct {
	recipe
	directory string // <root>/<key>
}

// openCache finds the cache that belongs to the source tree around the working directory.
func openCache(ctx context.Context) (*cache, error) {
	recipe, err := findRecipe()
	if err != nil {
		return nil, err
	}
	key, err := recipe.key(ctx)
	if err != nil {
		return nil, err
	}
	root := os.Getenv(CacheVariable)
	if root == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return nil, fmt.Errorf("find the user's cache directory; set %s to choose another: %w", CacheVariable, err)
		}
		root = filepath.Join(user, "clusterset-dns")
	}
	root, err = filepath.Abs(filepath.Join(root, "controlplane"))
	if err != nil {
		return nil, fmt.Errorf("resolve the cache directory: %w", err)
	}
	if err := os.MkdirAll(root, 0o755); err != nil {
		return nil, fmt.Errorf("make the cache directory; set %s to choose another: %w", CacheVariable, err)
	}
	return &cache{recipe: recipe, directory: filepath.Join(root, key)}, nil
}

// fill builds the programs, unless somebody else has done so meanwhile.
func (c *cache) fill(ctx context.Context, progress io.Writer) error {
	unlock, err := c.lock(ctx, progress)
	if err != nil {
		return err
	}
	defer unlock()

	if len(Paths{}.find(c.directory, All())) == 0 {
		return nil
	}
	work := c.directory + building
	if err := os.RemoveAll(work); err != nil {
		return fmt.Errorf("clean up after an earlier build: %w", err)
	}
	defer os.RemoveAll(work)
	if err := os.Mkdir(work, 0o755); err != nil {
		return fmt.Errorf("make the directory of the programs: %w", err)
	}
	if err := c.build(ctx, progress, work); err != nil {
		return err
	}
	if err := errors.Join(os.RemoveAll(c.directory), os.Rename(work, c.directory)); err != nil {
		return fmt.Errorf("put the programs into the cache: %w", err)
	}
	return nil
}

// The suffixes of what belongs to a key.
const (
	building = ".building"
	locked   = ".lock"
)

// lock takes the lock of the cache.
func (c *cache) lock(ctx context.Context, progress io.Writer) (unlock func(), err error) {
	return flock.Wait(ctx, c.directory+locked, func() {
		fmt.Fprintln(progress, "control plane: waiting for another process that builds the programs")
	})
}
