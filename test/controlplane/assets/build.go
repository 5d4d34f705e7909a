// SPDX-License-Identifier: Apache-2.0

package assets

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/clusterset-dns/clusterset-dns/test/controlplane/process"
)

// build builds programs below work, which is empty, and returns where they are.
func (r *recipe) build(ctx context.Context, progress io.Writer, work string, programs []Program) (Paths, error) {
	output, temporary := filepath.Join(work, "programs"), filepath.Join(work, "tmp")
	for _, directory := range []string{output, temporary} {
		if err := os.MkdirAll(directory, 0o755); err != nil {
			return nil, fmt.Errorf("make the build directory: %w", err)
		}
	}
	names := make([]string, len(programs))
	for i, program := range programs {
		names[i] = string(program)
	}
	ticker := startTicker(progress, tickerInterval)
	defer ticker.stop()
	ticker.say("building " + strings.Join(names, ", ") + ", once for this machine; it takes minutes")

	// The compilers and linkers are children of the go command. A small wrapper ties each of them
	// to it, as the go command itself is tied to this process.
	tie := filepath.Join(work, "tie")
	if err := runGo(ctx, ticker, r.tie, temporary, "build", "-trimpath", "-buildvcs=false", "-o", tie, "."); err != nil {
		return nil, fmt.Errorf("build the wrapper of the Go toolchain's tools: %w", err)
	}
	args := slices.Concat([]string{"build", "-v", "-toolexec=" + tie}, r.flags, []string{"-o", output + string(filepath.Separator)})
	for _, program := range programs {
		args = append(args, r.packages[program])
	}
	if err := runGo(ctx, ticker, r.source, temporary, args...); err != nil {
		return nil, fmt.Errorf("build %s: %w", strings.Join(names, ", "), err)
	}
	built := Paths{}
	for _, program := range programs {
		built[program] = filepath.Join(output, executable(r.packages[program]))
	}
	ticker.say("built " + strings.Join(names, ", "))
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

// runGo runs the go command, tied to this process, and tells the ticker what it is at.
func runGo(ctx context.Context, ticker *ticker, directory, temporary string, args ...string) error {
	reader, writer, err := os.Pipe()
	if err != nil {
		return err
	}
	command := exec.Command("go", args...)
	command.Dir = directory
	command.Env = append(slices.Concat(os.Environ(), buildSettings), "GOTMPDIR="+temporary)
	command.Stdout, command.Stderr = writer, writer
	err = process.StartTied(command)
	writer.Close()
	if err != nil {
		reader.Close()
		return fmt.Errorf("run the go command: %w", err)
	}
	// Killing its process group takes the compilers along.
	release := context.AfterFunc(ctx, func() { _ = syscall.Kill(-command.Process.Pid, syscall.SIGKILL) })

	var tail []string // the last lines: an error, where there is one
	compiled := 0
	for lines := bufio.NewScanner(reader); lines.Scan(); {
		line := lines.Text()
		if len(line) > 500 {
			line = line[:500] + "…"
		}
		if tail = append(tail, line); len(tail) > 30 {
			tail = tail[1:]
		}
		if rest, ok := strings.CutPrefix(line, "go: downloading "); ok {
			ticker.set("downloading " + rest)
		} else {
			compiled++
			ticker.set(fmt.Sprintf("%d packages compiled, now %s", compiled, line))
		}
	}
	_, _ = io.Copy(io.Discard, reader) // what follows a line too long for the scanner
	reader.Close()
	err = command.Wait()
	if !release() {
		return context.Cause(ctx)
	}
	if err != nil {
		return fmt.Errorf("go %s in %s: %w\n%s", args[0], directory, err, strings.Join(tail, "\n"))
	}
	return nil
}

// tickerInterval is how often a build writes a line.
const tickerInterval = 5 * time.Second

// ticker writes what is going on, with the time since it started, once in an interval.
type ticker struct {
	progress io.Writer
	started  time.Time
	end      chan struct{}
	ended    chan struct{}

	mu    sync.Mutex
	state string
}

func startTicker(progress io.Writer, interval time.Duration) *ticker {
	t := &ticker{progress: progress, started: time.Now(), end: make(chan struct{}), ended: make(chan struct{})}
	go func() {
		defer close(t.ended)
		timer := time.NewTicker(interval)
		defer timer.Stop()
		for {
			select {
			case <-timer.C:
				t.write()
			case <-t.end:
				return
			}
		}
	}()
	return t
}

// set changes what the next line says.
func (t *ticker) set(state string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.state = state
}

// say writes state at once, unless that is what was said last.
func (t *ticker) say(state string) {
	t.mu.Lock()
	same := t.state == state
	t.state = state
	t.mu.Unlock()
	if !same {
		t.write()
	}
}

func (t *ticker) write() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.state != "" {
		fmt.Fprintf(t.progress, "control plane: %4.0fs  %s\n", time.Since(t.started).Seconds(), t.state)
	}
}

func (t *ticker) stop() {
	close(t.end)
	<-t.ended
}
