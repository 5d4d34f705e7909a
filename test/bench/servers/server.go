// SPDX-License-Identifier: Apache-2.0

package servers

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	"github.com/clusterset-dns/clusterset-dns/test/controlplane/port"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/process"
)

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
	// Program is test/bench/server.
	Program string
	// Source is what its plugin answers from: see [Kind].
	Source string
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
	*Process
}

// Start starts a server and does not wait for it. The caller stops it.
func Start(spec Spec) (*Server, error) {
	address, err := port.Free()
	if err != nil {
		return nil, err
	}
	debug, err := port.Free()
	if err != nil {
		return nil, err
	}
	corefile := filepath.Join(spec.Dir, fmt.Sprintf("Corefile-%d", address.Port()))
	text := spec.Kind.corefile(address.Port(), debug.Port(), spec.Source)
	if err := os.WriteFile(corefile, []byte(text), 0o600); err != nil {
		return nil, fmt.Errorf("write a Corefile: %w", err)
	}
	path, args, err := Command(spec.Core, spec.Program, "-conf", corefile)
	if err != nil {
		return nil, err
	}
	started, err := process.Start(process.Spec{
		Name: string(spec.Kind), Path: path, Args: args,
		LogFile: filepath.Join(spec.Dir, fmt.Sprintf("%s-%d.log", spec.Kind, address.Port())),
	})
	if err != nil {
		return nil, err
	}
	return &Server{
		Kind: spec.Kind, Address: address.String(),
		Process: &Process{Process: started, Debug: debug.String()},
	}, nil
}
