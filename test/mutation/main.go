// SPDX-License-Identifier: Apache-2.0

// Command mutation proves that tests detect mistakes where these would do most harm: in what stays when contact is
// lost, which member is believed, what clusters agree on, and what is written. It applies each mutant of a list to the
// checkout, by an overlay, and runs the package's unit tests and the simulation. It prints each mutant that survives,
// and fails; it also fails if the text that a mutant replaces is not found.
package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/clusterset-dns/clusterset-dns/test/controlplane/process"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/programs"
)

// simulation is the package of which tests run against every mutant.
const simulation = "./test/sim"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	only := flag.String("run", "", "a regular expression: only mutants whose file, text or harm it matches")
	flag.Parse()
	err := process.TieToParent()
	if err == nil {
		err = run(ctx, *only)
	}
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutation:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, only string) error {
	pattern, err := regexp.Compile(only)
	if err != nil {
		return err
	}
	root, err := programs.Checkout()
	if err != nil {
		return err
	}
	var failed []error
	var lock sync.Mutex // of failed, and of the output
	var group errgroup.Group
	group.SetLimit(runtime.NumCPU())
	begin, count := time.Now(), 0
	for _, m := range mutants {
		if !pattern.MatchString(m.file + "\n" + m.text + "\n" + m.harm) {
			continue
		}
		count++
		group.Go(func() error {
			began := time.Now()
			by, err := m.test(ctx, root)
			lock.Lock()
			defer lock.Unlock()
			if err != nil {
				failed = append(failed, fmt.Errorf("%s: %w", m, err))
			}
			fmt.Printf("%5.1fs  %-40s %s\n", time.Since(began).Seconds(), cmp.Or(by, "LIVES"), m)
			return nil
		})
	}
	_ = group.Wait()
	fmt.Printf("%d mutants in %.0f s, %d not killed\n", count, time.Since(begin).Seconds(), len(failed))
	return errors.Join(failed...)
}

// errLives means that no test failed.
var errLives = errors.New("no test notices it")

// test runs the tests with the mutant in an overlay of the Go toolchain. It returns the first test that failed.
func (m mutant) test(ctx context.Context, root string) (by string, err error) {
	after, err := m.apply(root)
	if err != nil {
		return "", err
	}
	directory, err := os.MkdirTemp("", "mutation-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(directory)
	file, overlay := filepath.Join(directory, filepath.Base(m.file)), filepath.Join(directory, "overlay.json")
	text := fmt.Appendf(nil, `{"Replace": {%q: %q}}`, filepath.Join(root, m.file), file)
	if err := errors.Join(os.WriteFile(file, after, 0o600), os.WriteFile(overlay, text, 0o600)); err != nil {
		return "", err
	}
	unit := "./" + filepath.Dir(m.file)
	rounds := [][]string{{unit}, {simulation}}
	if m.first != "" {
		rounds = append([][]string{{"-run=" + m.first, simulation}}, rounds...)
	}
	for _, round := range rounds {
		by, err := failure(ctx, root, overlay, round)
		if by != "" || err != nil {
			return by, err
		}
	}
	return "", errLives
}

// apply returns the file with the mutant.
func (m mutant) apply(root string) (after []byte, err error) {
	before, err := os.ReadFile(filepath.Join(root, m.file))
	if err != nil {
		return nil, err
	}
	if count := bytes.Count(before, []byte(m.text)); count != 1 {
		return nil, fmt.Errorf("its text is %d times in the file: bring the list in test/mutation up to date", count)
	}
	return bytes.Replace(before, []byte(m.text), []byte(m.replacement), 1), nil
}

var (
	failedTest = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)`)
	panicked   = regexp.MustCompile(`(?m)^(panic: .*|fatal error: .*)$`)
)

// failure runs tests and returns the first that fails. It returns an error if they do not compile, or time out, because
// the machine may be slow.
func failure(ctx context.Context, root, overlay string, arguments []string) (string, error) {
	// The same flags as in make test, so that only the packages affected by the mutant are compiled.
	command := exec.CommandContext(ctx, "go",
		append([]string{"test", "-trimpath", "-vet=off", "-ldflags=-s -w", "-failfast", "-timeout=10m", "-overlay=" + overlay},
			arguments...)...)
	command.Dir, command.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	output, err := command.CombinedOutput()
	if err == nil || ctx.Err() != nil {
		return "", ctx.Err()
	}
	switch found := failedTest.FindSubmatch(output); {
	case bytes.Contains(output, []byte("[build failed]")) || bytes.Contains(output, []byte("[setup failed]")):
		return "", fmt.Errorf("it does not compile:\n%s", output)
	case bytes.Contains(output, []byte("panic: test timed out")):
		return "", errors.New("the tests do not end")
	case found != nil:
		return string(found[1]), nil
	}
	if found := panicked.Find(output); found != nil {
		return string(found), nil
	}
	return "", fmt.Errorf("%w:\n%s", err, output)
}
