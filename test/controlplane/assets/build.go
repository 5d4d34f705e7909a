// SPDX-License-Identifier: Apache-2.0

package assets

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/clusterset-dns/clusterset-dns/test/controlplane/process"
)

// executable is the file that holds all programs. It runs the one whose name it is called by.
const executable = "programs"

// build builds the programs into an empty directory.
func (r *recipe) build(ctx context.Context, progress io.Writer, output string) error {
	packages, err := r.run(ctx, "list", "-deps", r.packagePath)
	if err != nil {
		return fmt.Errorf("list the packages of the control plane's programs: %w\n%s", err, packages)
	}
	fmt.Fprintf(progress, "control plane: building %d programs in one from %d packages, once for this machine; it takes minutes\n",
		len(All()), bytes.Count(packages, []byte("\n")))
	started := time.Now()
	args := slices.Concat([]string{"build"}, r.flags, []string{"-o", filepath.Join(output, executable), r.packagePath})
	if text, err := r.run(ctx, args...); err != nil {
		return fmt.Errorf("build %v in %s: %w\n%s", All(), r.source, err, text)
	}
	for _, program := range All() {
		if err := os.Symlink(executable, filepath.Join(output, string(program))); err != nil {
			return fmt.Errorf("name a built program: %w", err)
		}
	}
	fmt.Fprintf(progress, "control plane: built in %.0f s\n", time.Since(started).Seconds())
	return nil
}

// run runs the Go toolchain in the nested module, and returns what it writes.
func (r *recipe) run(ctx context.Context, args ...string) ([]byte, error) {
	command := exec.CommandContext(ctx, "go", args...)
	command.Dir, command.Env = r.source, slices.Concat(os.Environ(), buildSettings)
	// Killing its process group takes the compilers along.
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }
	var text bytes.Buffer
	command.Stdout, command.Stderr = &text, &text
	err := process.StartTied(command)
	if err == nil {
		err = command.Wait()
	}
	return text.Bytes(), err
}
