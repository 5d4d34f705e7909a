// SPDX-License-Identifier: Apache-2.0

package assets

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// cache is the place of the programs that one set of build inputs gives.
//
//	<root>/<key>/           the programs; each gets there by a rename, once it is whole
//	<root>/<key>.building/  a build on its way, of the one who holds the lock
//	<root>/<key>.lock       locked (flock) while somebody builds; never removed
type cache struct {
	source    string // the directory of the nested module
	directory string // <root>/<key>
}

// openCache finds the cache that belongs to the source tree around the working directory.
func openCache(ctx context.Context) (*cache, error) {
	source, err := findSource()
	if err != nil {
		return nil, err
	}
	key, err := buildKey(ctx, source)
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
	root, err = filepath.Abs(root)
	if err != nil {
		return nil, fmt.Errorf("resolve the cache directory: %w", err)
	}
	if err := os.MkdirAll(root, 0o755); err != nil {
		return nil, fmt.Errorf("make the cache directory; set %s to choose another: %w", CacheVariable, err)
	}
	return &cache{source: source, directory: filepath.Join(root, key)}, nil
}

// nestedModule is where the module that pins the programs is in the source tree.
const nestedModule = "test/controlplane/binaries"

// findSource finds the nested module: in the source tree around the working directory, or
// around the running program.
func findSource() (string, error) {
	var starts []string
	if working, err := os.Getwd(); err == nil {
		starts = append(starts, working)
	}
	if executable, err := os.Executable(); err == nil {
		starts = append(starts, filepath.Dir(executable))
	}
	for _, start := range starts {
		for directory := start; ; directory = filepath.Dir(directory) {
			candidate := filepath.Join(directory, filepath.FromSlash(nestedModule))
			if _, err := os.Stat(filepath.Join(candidate, "go.mod")); err == nil {
				return candidate, nil
			}
			if directory == filepath.Dir(directory) {
				break
			}
		}
	}
	return "", fmt.Errorf("find %s, which pins the control plane's programs, in or above %s: run this inside the source tree, or set %s to a directory that holds %v",
		nestedModule, strings.Join(starts, " and "), DirectoryVariable, All())
}

// buildFlags are the flags of every build. They are part of the key.
func buildFlags(source string) ([]string, error) {
	version, err := kubernetesVersion(source)
	if err != nil {
		return nil, err
	}
	// Without a version the servers call themselves v0.0.0-master, and clients that compare versions balk.
	return []string{"-trimpath", "-buildvcs=false", "-ldflags=-s -w -X k8s.io/component-base/version.gitVersion=" + version}, nil
}

// kubernetesVersion reads the required version of k8s.io/kubernetes.
func kubernetesVersion(source string) (string, error) {
	file := filepath.Join(source, "go.mod")
	content, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("read the nested module: %w", err)
	}
	for line := range strings.Lines(string(content)) {
		fields := strings.Fields(strings.TrimPrefix(strings.TrimSpace(line), "require"))
		if len(fields) >= 2 && fields[0] == "k8s.io/kubernetes" {
			return fields[1], nil
		}
	}
	return "", fmt.Errorf("%s does not require k8s.io/kubernetes", file)
}

// buildKey names what a build of source gives: it is the hash of the module's requirements and their
// sums, of the toolchain and its target, and of the flags.
func buildKey(ctx context.Context, source string) (string, error) {
	flags, err := buildFlags(source)
	if err != nil {
		return "", err
	}
	command := exec.CommandContext(ctx, "go", "env", "GOVERSION", "GOOS", "GOARCH", "GOAMD64", "GOARM64")
	command.Dir = source
	command.Env = buildEnv()
	toolchain, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("ask the Go toolchain for its version: %w", withOutput(err))
	}
	hash := sha256.New()
	fmt.Fprintf(hash, "%s\n%q\n", toolchain, flags)
	for _, name := range []string{"go.mod", "go.sum"} {
		content, err := os.ReadFile(filepath.Join(source, name))
		if err != nil {
			return "", fmt.Errorf("read the nested module: %w", err)
		}
		fmt.Fprintf(hash, "%s %d\n", name, len(content))
		hash.Write(content)
	}
	return hex.EncodeToString(hash.Sum(nil))[:20], nil
}

// buildEnv is the environment of the Go toolchain: programs without C, for this machine, and
// requirements from the nested module alone.
func buildEnv() []string {
	return append(os.Environ(), "CGO_ENABLED=0", "GOOS="+runtime.GOOS, "GOARCH="+runtime.GOARCH, "GOWORK=off", "GOFLAGS=-mod=readonly")
}

// withOutput adds what a failed command wrote to standard error.
func withOutput(err error) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) && len(exit.Stderr) > 0 {
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(string(exit.Stderr)))
	}
	return err
}

// fill builds the programs that are missing, unless somebody else has done so meanwhile.
func (c *cache) fill(ctx context.Context, progress io.Writer, programs []Program) error {
	unlock, err := c.lock(ctx, progress)
	if err != nil {
		return err
	}
	defer unlock()

	programs = Paths{}.find(c.directory, programs)
	if len(programs) == 0 {
		return nil
	}
	work := c.directory + ".building"
	if err := os.RemoveAll(work); err != nil { // what a killed build left
		return fmt.Errorf("clean up after an earlier build: %w", err)
	}
	defer os.RemoveAll(work)
	if err := os.MkdirAll(work, 0o755); err != nil {
		return fmt.Errorf("make the build directory: %w", err)
	}
	if err := os.MkdirAll(c.directory, 0o755); err != nil {
		return fmt.Errorf("make the directory of the programs: %w", err)
	}
	built, err := build(ctx, progress, c.source, work, programs)
	if err != nil {
		return err
	}
	for _, program := range programs {
		if err := os.Rename(built[program], filepath.Join(c.directory, string(program))); err != nil {
			return fmt.Errorf("put %s into the cache: %w", program, err)
		}
	}
	return nil
}

// lock takes the lock of the cache, and says every ten seconds that it waits for it.
// The kernel gives the lock back where the holder dies.
func (c *cache) lock(ctx context.Context, progress io.Writer) (unlock func(), err error) {
	name := c.directory + ".lock"
	file, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open the lock of the cache: %w", err)
	}
	retry := time.NewTicker(lockInterval)
	defer retry.Stop()
	ticker := startTicker(progress)
	defer ticker.stop()
	for {
		err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return func() { file.Close() }, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			file.Close()
			return nil, fmt.Errorf("lock %s: %w", name, err)
		}
		ticker.say("waiting for another process that builds the control plane's programs")
		select {
		case <-ctx.Done():
			file.Close()
			return nil, fmt.Errorf("wait for %s: %w", name, context.Cause(ctx))
		case <-retry.C:
		}
	}
}

// lockInterval is the pause between two looks at a lock that somebody else holds.
const lockInterval = 200 * time.Millisecond
