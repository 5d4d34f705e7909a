// SPDX-License-Identifier: Apache-2.0

// Package network creates networks of Linux network namespaces: routers, and hosts or single pods that are attached to
// them. A namespace has no name in the file system. It ends when it is closed and no process is in it.
package network

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/clusterset-dns/clusterset-dns/test/controlplane/process"
)

// Namespace is a network namespace. Its methods may be called from any goroutine.
type Namespace struct{ file *os.File }

// settings are the sysctls of a namespace: it forwards packets, and its addresses are usable immediately, without
// duplicate address detection.
var settings = map[string]string{
	"ipv4/ip_forward":                 "1",
	"ipv4/conf/all/rp_filter":         "0",
	"ipv4/conf/default/rp_filter":     "0",
	"ipv6/conf/all/forwarding":        "1",
	"ipv6/conf/default/accept_dad":    "0",
	"ipv6/conf/default/dad_transmits": "0",
	// For clients that make thousands of connections.
	"ipv4/ip_local_port_range": "10000 65535",
	"ipv4/tcp_tw_reuse":        "1",
}

// New creates an empty network namespace with its loopback interface up.
func New() (*Namespace, error) {
	return setUp(func() error { return unix.Unshare(unix.CLONE_NEWNET) })
}

// Own returns the namespace of this process, set up as a router like those of New.
func Own() (*Namespace, error) {
	return setUp(func() error { return nil })
}

// setUp sets up the namespace that lead makes its thread enter.
func setUp(lead func() error) (n *Namespace, err error) {
	err = inThread(func() error {
		if err := lead(); err != nil {
			return fmt.Errorf("make a network namespace: %w", err)
		}
		for name, value := range settings {
			if err := os.WriteFile(filepath.Join("/proc/sys/net", name), []byte(value), 0o644); err != nil {
				return err
			}
		}
		n, err = ofThread()
		return err
	})
	if err != nil {
		return nil, err
	}
	return n, n.ip("link set lo up")
}

// ofThread returns the namespace of the current thread.
func ofThread() (*Namespace, error) {
	file, err := os.Open("/proc/thread-self/ns/net")
	return &Namespace{file}, err
}

func (n *Namespace) enter() error { return unix.Setns(int(n.file.Fd()), unix.CLONE_NEWNET) }

// Do calls do in a thread that is in the namespace: sockets that do creates belong to the namespace.
func (n *Namespace) Do(do func() error) error {
	return inThread(func() error {
		if err := n.enter(); err != nil {
			return err
		}
		return do()
	})
}

// inThread calls do in a thread that may enter another namespace, and returns the thread to its previous one.
func inThread(do func() error) (err error) {
	runtime.LockOSThread()
	before, err := ofThread()
	if err != nil {
		runtime.UnlockOSThread()
		return err
	}
	defer before.Close()
	defer func() {
		if back := before.enter(); back != nil {
			err = errors.Join(err, back)
			return // keep the thread locked, so that no other goroutine runs in it
		}
		runtime.UnlockOSThread()
	}()
	return do()
}

// Close releases the namespace. It ends after its processes have ended. Further calls do nothing.
func (n *Namespace) Close() error {
	if err := n.file.Close(); !errors.Is(err, os.ErrClosed) {
		return err
	}
	return nil
}

// Path returns the path of the namespace. It is valid until Close, while this process runs.
func (n *Namespace) Path() string { return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), n.file.Fd()) }

// AddAddress adds addresses to the loopback interface of the namespace, so that they do not depend on attached interfaces.
func (n *Namespace) AddAddress(addresses ...netip.Addr) error {
	var commands []string
	for _, address := range addresses {
		commands = append(commands, fmt.Sprintf("address add %s dev lo", address))
	}
	return n.ip(commands...)
}

// wires numbers the interfaces of this process.
var wires atomic.Uint32

// Attach connects another namespace to this one. The other namespace gets the addresses, one per family, and its
// default routes to this one. This namespace routes the addresses, and the ranges by the address of their family, to
// the other one.
func (n *Namespace) Attach(other *Namespace, addresses []netip.Addr, ranges ...netip.Prefix) error {
	wire := fmt.Sprintf("wire%d", wires.Add(1))
	here := []string{
		fmt.Sprintf("link add %s type veth peer name eth0 netns %s", wire, other.Path()), "link set " + wire + " up",
	}
	there := []string{"link set eth0 up"}
	for _, address := range addresses {
		// Every namespace sees the one to which it is attached at these addresses, which are valid only on their link.
		gateway, all := "169.254.1.1", "0.0.0.0/0"
		if address.Is6() {
			gateway, all = "fe80::1", "::/0"
		}
		here = append(here, fmt.Sprintf("address add %s dev %s", gateway, wire), fmt.Sprintf("route replace %s dev %s", address, wire))
		there = append(there, fmt.Sprintf("address add %s dev eth0", address), fmt.Sprintf("route replace %s dev eth0", gateway),
			fmt.Sprintf("route replace %s via %s dev eth0", all, gateway))
		for _, behind := range ranges {
			if behind.Addr().Is4() == address.Is4() {
				here = append(here, fmt.Sprintf("route replace %s via %s", behind, address))
			}
		}
	}
	return errors.Join(n.ip(here...), other.ip(there...))
}

// Refuse makes the namespace reject packets to the ranges as unreachable instead of forwarding them. Packets whose
// destination is translated before forwarding are not rejected.
func (n *Namespace) Refuse(ranges ...netip.Prefix) error {
	var commands []string
	for _, refused := range ranges {
		commands = append(commands, fmt.Sprintf("route replace unreachable %s", refused.Masked()))
	}
	return n.ip(commands...)
}

// ip executes commands with ip(8) in the namespace, in a single process.
func (n *Namespace) ip(commands ...string) error {
	return n.feed(strings.Join(commands, "\n"), "ip", "-batch", "-")
}

// Filter adds nftables rules to the namespace.
func (n *Namespace) Filter(rules string) error { return n.feed(rules, "nft", "-f", "-") }

// feed runs a program in the namespace with a text as its standard input.
func (n *Namespace) feed(text, program string, args ...string) error {
	line := n.Command("", program, args...)
	command := exec.Command(line[0], line[1:]...)
	command.Stdin = strings.NewReader(text)
	if _, err := process.Output(command); err != nil {
		return fmt.Errorf("%w\n%s", err, text)
	}
	return nil
}

// enter is a shell script that mounts its first argument, a file, over /etc/resolv.conf, and replaces itself by the
// program in the other arguments.
const enter = `mount --bind "$0" /etc/resolv.conf && exec "$@"`

// Command returns a command line that runs a program in the namespace, with the file resolvConf, unless it is empty, as
// its /etc/resolv.conf. The resulting process is the program itself, because all wrappers exec.
func (n *Namespace) Command(resolvConf, program string, args ...string) []string {
	command := []string{"nsenter", "--net=" + n.Path(), "--"}
	if resolvConf != "" {
		command = append(command, "unshare", "--mount", "--", "sh", "-c", enter, resolvConf)
	}
	return append(append(command, program), args...)
}

// In returns a process specification that runs in the namespace, with the command line of [Namespace.Command].
func (n *Namespace) In(resolvConf string, spec process.Spec) process.Spec {
	command := n.Command(resolvConf, spec.Path, spec.Args...)
	spec.Path, spec.Args = command[0], command[1:]
	return spec
}
