// SPDX-License-Identifier: Apache-2.0

package assets

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// recipe is what a build depends on, the Go toolchain and its environment apart.
type recipe struct {
	source      string   // the directory of the nested module
	packagePath string   // what to build there
	flags       []string // of go build
}

// nestedModule is where the module that pins the programs is in the source tree.
const nestedModule = "test/controlplane/binaries"

// findSource finds the nested module: in the source tree around the working directory, or around the running program.
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

// findRecipe is the recipe of the source tree.
func findRecipe() (recipe, error) {
	source, err := findSource()
	if err != nil {
		return recipe{}, err
	}
	flags, err := buildFlags(source)
	if err != nil {
		return recipe{}, err
	}
	return recipe{source: source, packagePath: "./" + executable, flags: flags}, nil
}

// buildFlags are the flags of every build. They are part of the key.
func buildFlags(source string) ([]string, error) {
	version, err := kubernetesVersion(source)
	if err != nil {
		return nil, err
	}
	// Without a version the servers call themselves v0.0.0-master, and clients that compare versions balk.
	return []string{
		"-trimpath", "-buildvcs=false", "-ldflags=-s -w -X k8s.io/component-base/version.gitVersion=" + version,
	}, nil
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

// key names what a build gives: it is the hash of the module's requirements and their sums, of its own source, of the
// toolchain and its target, and of the flags.
func (r *recipe) key(ctx context.Context) (string, error) {
	command := exec.CommandContext(ctx, "go", "env", "GOVERSION", "GOOS", "GOARCH", "GOAMD64", "GOARM64")
	command.Dir = r.source
	command.Env = append(os.Environ(), buildSettings...)
	toolchain, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("ask the Go toolchain for its version: %w", withOutput(err))
	}
	hash := sha256.New()
	fmt.Fprintf(hash, "%s\n%q\n%q\n", toolchain, buildSettings, r.flags)
	for _, name := range []string{"go.mod", "go.sum", "programs/main.go", "programs/controllers.go"} {
		content, err := os.ReadFile(filepath.Join(r.source, name))
		if err != nil {
			return "", fmt.Errorf("read the nested module: %w", err)
		}
		fmt.Fprintf(hash, "%s %d\n", name, len(content))
		hash.Write(content)
	}
	return hex.EncodeToString(hash.Sum(nil))[:20], nil
}

// buildSettings are the environment of the Go toolchain, beside that of this process: programs without C, for this
// machine, and requirements from the nested module alone.
var buildSettings = []string{
	"CGO_ENABLED=0", "GOOS=" + runtime.GOOS, "GOARCH=" + runtime.GOARCH, "GOWORK=off", "GOFLAGS=-mod=readonly",
}

// withOutput adds what a failed command wrote to standard error.
func withOutput(err error) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) && len(exit.Stderr) > 0 {
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(string(exit.Stderr)))
	}
	return err
}
