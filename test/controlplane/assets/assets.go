// SPDX-License-Identifier: Apache-2.0

// Package assets provides the programs of a Kubernetes control plane, kube-proxy, and versions of helm that are pinned by
// their own modules.
package assets

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/clusterset-dns/clusterset-dns/test/controlplane/programs"
)

// Program is the file name of a program.
type Program string

// The provided programs.
const (
	Etcd        Program = "etcd"
	APIServer   Program = "kube-apiserver"
	Controllers Program = "kube-controller-manager"
	Scheduler   Program = "kube-scheduler"
	KubeProxy   Program = "kube-proxy"
	Kubectl     Program = "kubectl"
)

// Cluster returns the programs of a cluster with nodes, in the order of their start. The last one is only needed with nodes.
func Cluster() []Program {
	return []Program{Etcd, APIServer, Controllers, Scheduler}
}

// Paths has the absolute path of each program.
type Paths map[Program]string

// binaries is the module that pins the programs. executable is the program that contains all of them: it runs the
// program by whose name it is called.
const binaries, executable = "test/controlplane/binaries", "programs"

// Ensure finds the programs, and builds them, as a single executable, unless they are up to date. If that takes long,
// it reports so on standard error. Any number of processes may call it in parallel. Each process checks only once.
func Ensure() (Paths, error) { return ensure() }

var ensure = sync.OnceValues(func() (Paths, error) {
	defer time.AfterFunc(5*time.Second, func() {
		fmt.Fprintln(os.Stderr, "control plane: building its programs; without a cache it takes minutes")
	}).Stop()
	ctx := context.Background()
	version, err := programs.Go(ctx, binaries, environment, "list", "-m", "-f", "{{.Version}}", "k8s.io/kubernetes")
	if err != nil {
		return nil, err
	}
	// Without a version the servers report v0.0.0-master, which clients that compare versions reject.
	folder, err := programs.BuildIn(ctx, binaries, environment, "-buildvcs=false",
		"-ldflags=-s -w -X=k8s.io/component-base/version.gitVersion="+version, "./"+executable)
	if err != nil {
		return nil, fmt.Errorf("build the control plane's programs: %w", err)
	}
	paths := Paths{}
	for _, name := range append(Cluster(), KubeProxy, Kubectl) {
		paths[name] = filepath.Join(folder, string(name))
		if err := os.Symlink(executable, paths[name]); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, fmt.Errorf("name a built program: %w", err)
		}
	}
	return paths, nil
})

// environment makes the build use only the requirements of the nested module.
var environment = []string{"GOWORK=off", "GOFLAGS=-mod=readonly"}

// Helm returns the path of the helm that a module in test/tools pins. It is in the cache of the Go toolchain.
func Helm(ctx context.Context, module string) (string, error) {
	// The same flags as in the Makefile, so that nothing is built twice.
	return programs.Go(ctx, filepath.Join("test", "tools", module), []string{"GOWORK=off", "GOFLAGS=-tags=remove_all_sd"}, "tool", "-n", "helm")
}
