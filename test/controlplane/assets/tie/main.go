// SPDX-License-Identifier: Apache-2.0

// Command tie runs another program in its own place, killed by the kernel when the parent dies.
// It is a -toolexec wrapper of the go command.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "tie:", err)
		os.Exit(1)
	}
}

// run returns only where it fails. The parent death signal belongs to the thread, and outlives execve(2).
func run(args []string) error {
	runtime.LockOSThread()
	if len(args) == 0 {
		return errors.New("usage: tie program [argument…]")
	}
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
		return err
	}
	if os.Getppid() == 1 {
		return errors.New("the parent died before this process could be tied to it")
	}
	path, err := exec.LookPath(args[0])
	if err != nil {
		return err
	}
	return syscall.Exec(path, args, os.Environ())
}
