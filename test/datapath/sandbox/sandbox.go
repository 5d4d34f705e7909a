// SPDX-License-Identifier: Apache-2.0

// Package sandbox runs a program in its own Linux namespaces, where it can create networks. They are invisible outside,
// and disappear when the program ends, however it ends.
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

// variable tells the program that it runs inside. It is not secret: if a user sets it, the program fails, because it is
// not the first process of a process namespace.
const variable = "CLUSTERSET_DNS_SANDBOX"

// Main runs the tests of a package in a sandbox, and ends the process. It first calls outside, which has network
// access, and at the end the function that outside returned.
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

// enter runs this program again with the same arguments in a new network, mount and process namespace, and returns its
// exit code once all processes inside have ended. Unless this process is root with all capabilities, they are in a new
// user namespace. The program must call Setup first inside.
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
	// A signal that ends this process must also end the program inside. A Ctrl-C of the terminal does not reach it directly.
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

// systemPath has the directories of system administration programs, which other users' PATH lacks.
const systemPath = "/usr/local/sbin:/usr/sbin:/sbin"

// Setup prepares the sandbox: a new /proc, an empty /run without locks and sockets of the machine's programs, private
// mounts, and a router, which it returns. It fails if one of the programs is not installed.
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
		return nil, fmt.Errorf("programs are not installed: %s; on Debian they are in nftables, iptables, iproute2, util-linux, mount and nginx", strings.Join(missing, ", "))
	}
	if err := errors.Join(
		unix.Mount("none", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""), // mounts stay inside
		unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""),
		unix.Mount("empty", "/run", "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, ""),
	); err != nil {
		return nil, fmt.Errorf("mount the /proc of the process namespace, and an empty /run: %w; a container runtime that masks parts of /proc forbids it", err)
	}
	router, err := network.Own()
	if err != nil { // in a container, /proc/sys is read-only
		return nil, fmt.Errorf("make the sandbox a router: %w", err)
	}
	return router, nil
}
