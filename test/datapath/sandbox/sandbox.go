// SPDX-License-Identifier: Apache-2.0

// Package sandbox runs a program in Linux namespaces of its own, where it may make networks: nothing of it is seen
// outside, and nothing is left of it when it ends, whatever it dies of.
package sandbox

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/clusterset-dns/clusterset-dns/test/controlplane/controlplanetest"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/process"
	"github.com/clusterset-dns/clusterset-dns/test/datapath/network"
)

// variable tells the program that it is the one inside. Its value is no secret: a user who sets it
// gets an error, for not being the first process of a process namespace.
const variable = "CLUSTERSET_DNS_SANDBOX"

// Main runs the tests of a package in a sandbox. What may take the network is done outside, before; what that returns
// is called at the end. It ends the process.
func Main(m *testing.M, outside func() (clean func(), err error), inside func() error) {
	fail := func(err error) {
		if err != nil {
			fmt.Fprintln(os.Stderr, "the sandbox:", err)
			os.Exit(1)
		}
	}
	if os.Getenv(variable) != "" && os.Getpid() == 1 {
		fail(inside())
		controlplanetest.Main(m)
	}
	fail(process.TieToParent())
	clean, err := outside()
	fail(err)
	code, err := enter()
	clean()
	fail(err)
	os.Exit(code)
}

// enter runs this program once more, with the same arguments, in a network, a mount and a process namespace of its own,
// and returns its exit code once all processes inside have ended. Where this process is not root, or is root without
// its rights, there is a user namespace around them. The program calls Setup first thing inside.
func enter() (code int, err error) {
	all := syscall.CLONE_NEWNET | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID
	var inside *exec.Cmd
	if os.Geteuid() == 0 {
		inside, err = start(&syscall.SysProcAttr{Cloneflags: uintptr(all)})
	}
	if inside == nil {
		inside, err = start(&syscall.SysProcAttr{
			Cloneflags:  uintptr(all | syscall.CLONE_NEWUSER),
			UidMappings: []syscall.SysProcIDMap{{HostID: os.Geteuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{HostID: os.Getegid(), Size: 1}},
		})
	}
	if err != nil {
		return 0, fmt.Errorf("make namespaces to run in: %w; this needs root with CAP_SYS_ADMIN and CAP_NET_ADMIN (in a container: --privileged), or a kernel that lets users make user namespaces", err)
	}
	// What ends this process by a signal ends the inside, too. A Ctrl-C of the terminal does not reach it by itself.
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		_ = inside.Process.Kill()
	}()
	err = inside.Wait()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.ExitCode() > 0 {
		return exit.ExitCode(), nil
	}
	if err != nil {
		return 0, fmt.Errorf("run in namespaces: %w", err)
	}
	return 0, nil
}

func start(attributes *syscall.SysProcAttr) (*exec.Cmd, error) {
	inside := exec.Command("/proc/self/exe", os.Args[1:]...)
	inside.Args[0] = os.Args[0]
	inside.Env = append(os.Environ(), variable+"=1")
	inside.Stdin, inside.Stdout, inside.Stderr = os.Stdin, os.Stdout, os.Stderr
	inside.SysProcAttr = attributes
	if err := process.StartTied(inside); err != nil {
		return nil, err
	}
	return inside, nil
}

// systemPath is where programs of system administrators are, which the search path of others lacks.
const systemPath = "/usr/local/sbin:/usr/sbin:/sbin"

// Setup makes the sandbox a place to work in: its own /proc, mounts that stay inside, and a router, which it returns. It fails
// where one of the programs is not installed.
func Setup(programs ...string) (*network.Namespace, error) {
	if err := os.Setenv("PATH", os.Getenv("PATH")+":"+systemPath); err != nil {
		return nil, fmt.Errorf("set the search path: %w", err)
	}
	var missing []string
	for _, program := range programs {
		if _, err := exec.LookPath(program); err != nil {
			missing = append(missing, program)
		}
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("programs are not installed: %s; on Debian they are in nftables, iptables, iproute2, util-linux, mount, curl and nginx", strings.Join(missing, ", "))
	}
	if err := errors.Join(
		unix.Mount("none", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""), // mounts stay inside
		unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""),
	); err != nil {
		return nil, fmt.Errorf("mount the /proc of the process namespace: %w; a container runtime that masks parts of /proc forbids it", err)
	}
	router, err := network.Own()
	if err != nil { // /proc/sys is read-only in a container
		return nil, fmt.Errorf("make the sandbox a router: %w", err)
	}
	return router, nil
}

// Empty puts an empty directory in the place of each of the given ones, so that what programs read and write there is
// not the machine's.
func Empty(directories ...string) error {
	for _, directory := range directories {
		if err := unix.Mount("empty", directory, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, ""); err != nil {
			return fmt.Errorf("mount an empty %s: %w", directory, err)
		}
	}
	return nil
}
