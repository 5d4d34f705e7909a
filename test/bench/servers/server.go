// SPDX-License-Identifier: Apache-2.0

package servers

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/clusterset-dns/clusterset-dns/test/controlplane/process"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/programs"
)

// Build builds a program of the module, given by its folder, and returns its path.
func Build(ctx context.Context, folder string) (string, error) {
	bin, err := programs.Build(ctx, folder)
	return filepath.Join(bin, filepath.Base(folder)), err
}

// AnyCore leaves it to the kernel where a process runs.
const AnyCore = -1

// Command returns the program and its arguments so that it runs on the given core alone.
func Command(core int, program string, args ...string) (path string, all []string, err error) {
	if core == AnyCore {
		return program, args, nil
	}
	taskset, err := exec.LookPath("taskset")
	if err != nil {
		return "", nil, fmt.Errorf("taskset is missing; install util-linux: %w", err)
	}
	return taskset, append([]string{"-c", strconv.Itoa(core), program}, args...), nil
}

// Spec says what server to start.
type Spec struct {
	Kind Kind
	// Program is what Build made of test/bench/server.
	Program string
	// Kubeconfig is the path of the credential for the API server.
	Kubeconfig string
	// Dir takes its Corefile and its log.
	Dir string
	// Core is the only one that it runs on, or AnyCore.
	Core int
}

// Server is a running server.
type Server struct {
	Kind Kind
	// Address is where it answers over UDP and TCP.
	Address string
	// Began is when it was started.
	Began time.Time
	*Process
}

// Start starts a server and does not wait for it. Whoever starts it stops it.
func Start(spec Spec) (*Server, error) {
	address, port, err := FreeAddress()
	if err != nil {
		return nil, err
	}
	debug, _, err := FreeAddress()
	if err != nil {
		return nil, err
	}
	corefile := filepath.Join(spec.Dir, fmt.Sprintf("Corefile-%d", port))
	text := spec.Kind.Corefile(port, spec.Kubeconfig, nil, "pprof "+debug)
	if err := os.WriteFile(corefile, []byte(text), 0o600); err != nil {
		return nil, fmt.Errorf("write a Corefile: %w", err)
	}
	path, args, err := Command(spec.Core, spec.Program, "-conf", corefile)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	started, err := process.Start(process.Spec{
		Name: string(spec.Kind), Path: path, Args: args,
		LogFile: filepath.Join(spec.Dir, fmt.Sprintf("%s-%d.log", spec.Kind, port)),
	})
	if err != nil {
		return nil, err
	}
	return &Server{Kind: spec.Kind, Address: address, Began: began, Process: &Process{Process: started, debug: debug}}, nil
}

// FreeAddress finds a loopback port that is free for UDP and TCP.
func FreeAddress() (address string, port int, err error) {
	for range 10 {
		var listener net.Listener
		if listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			break
		}
		address = listener.Addr().String()
		var packets net.PacketConn
		packets, err = net.ListenPacket("udp", address)
		listener.Close()
		if err == nil {
			packets.Close()
			return address, listener.Addr().(*net.TCPAddr).Port, nil
		}
	}
	return "", 0, fmt.Errorf("find a port that is free for UDP and TCP: %w", err)
}
