// SPDX-License-Identifier: Apache-2.0

package assets

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/clusterset-dns/clusterset-dns/test/controlplane/process"
)

// build builds programs into an empty directory, and returns where they are.
func (r *recipe) build(ctx context.Context, progress io.Writer, output string, programs []Program) (Paths, error) {
	args := slices.Concat([]string{"build"}, r.flags, []string{"-o", output + string(filepath.Separator)})
	built := Paths{}
	var names []string
	for _, program := range programs {
		pkg := r.packages[program]
		args, names = append(args, pkg), append(names, string(program))
		built[program] = filepath.Join(output, executable(pkg))
	}
	what := strings.Join(names, ", ")
	done := tell(progress, "building "+what+", once for this machine; it takes minutes")
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
	done()
	if err != nil {
		return nil, fmt.Errorf("build %s in %s: %w\n%s", what, r.source, err, text.String())
	}
	fmt.Fprintf(progress, "control plane: built %s\n", what)
	return built, nil
}

// executable is the file name that the go command gives to a main package: the last element of its
// path, or the one before it where that is a major version.
func executable(pkg string) string {
	name := path.Base(pkg)
	if len(name) > 1 && name[0] == 'v' && strings.Trim(name[1:], "0123456789") == "" {
		return path.Base(path.Dir(pkg))
	}
	return name
}

// tell writes what goes on, now and every ten seconds until the returned function is called.
func tell(progress io.Writer, what string) (done func()) {
	end, ended := make(chan struct{}), make(chan struct{})
	started := time.Now()
	go func() {
		defer close(ended)
		ticker := time.NewTicker(10 * time.Second)
		defer ticker.Stop()
		for {
			fmt.Fprintf(progress, "control plane: %4.0fs  %s\n", time.Since(started).Seconds(), what)
			select {
			case <-ticker.C:
			case <-end:
				return
			}
		}
	}()
	return func() {
		close(end)
		<-ended
	}
}
