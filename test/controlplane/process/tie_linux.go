// SPDX-License-Identifier: Apache-2.0

package process

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// spawner is the thread that forks all children. It never ends: its goroutine is locked to it and waits for the next
// call.
var spawner = sync.OnceValue(func() chan<- func() {
	calls := make(chan func())
	go func() {
		runtime.LockOSThread()
		for call := range calls {
			call()
		}
	}()
	return calls
})

func onSpawner(f func() error) error {
	result := make(chan error, 1)
	spawner() <- func() { result <- f() }
	return <-result
}

// StartTied is like cmd.Start, but the kernel kills the child when this process dies. It sets Setpgid and Pdeathsig in
// cmd.SysProcAttr, which may be nil.
func StartTied(cmd *exec.Cmd) error {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	return onSpawner(cmd.Start)
}

// Output runs a tied child until it ends, and returns its standard output. An error quotes its standard error.
func Output(cmd *exec.Cmd) (string, error) {
	var output, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &problems
	err := StartTied(cmd)
	if err == nil {
		err = cmd.Wait()
	}
	if err != nil {
		err = fmt.Errorf("%s: %w\n%s", filepath.Base(cmd.Path), err, problems.String())
	}
	return output.String(), err
}

// TieToParent makes the kernel kill this process when its parent dies: killing `go test` kills its test binary, and
// killing make its program. Call it first in main, because it does not detect a parent that has already died.
func TieToParent() error {
	parent := os.Getppid()
	// The parent death signal belongs to a thread, so it is set on the thread that lives as long as the process.
	err := onSpawner(func() error { return unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0) })
	if err != nil {
		return fmt.Errorf("tie to the parent process: %w", err)
	}
	if os.Getppid() != parent {
		return fmt.Errorf("tie to the parent process: process %d ended meanwhile", parent)
	}
	return nil
}
