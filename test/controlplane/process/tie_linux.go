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

// spawner is the thread that forks all children. It never ends: the goroutine
// that owns it is locked to it and waits for the next call.
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

// StartTied is cmd.Start for a child that the kernel kills when this process
// dies. It sets cmd.SysProcAttr where that is nil, and Setpgid and Pdeathsig in it.
func StartTied(cmd *exec.Cmd) error {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	return onSpawner(cmd.Start)
}

// Output runs a tied child to its end, and returns what it wrote to standard output. An error quotes what it wrote to standard
// error.
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

// TieToParent makes the kernel kill this process when its parent dies: a killed `go test` takes its test binary along,
// a killed make its program. Call it first thing in main: a parent that died before the call is not noticed.
func TieToParent() error {
	parent := os.Getppid()
	// Each thread has a parent death signal of its own, so it is set on the thread that lives as long as the process.
	err := onSpawner(func() error { return unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0) })
	if err != nil {
		return fmt.Errorf("tie to the parent process: %w", err)
	}
	if os.Getppid() != parent {
		return fmt.Errorf("tie to the parent process: process %d ended meanwhile", parent)
	}
	return nil
}
