// SPDX-License-Identifier: Apache-2.0

// Package assets provides the programs of a Kubernetes control plane, and kube-proxy, and the tools that modules of their
// own pin.
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

// Program is the file name of one of the programs.
type Program string

// The programs that there are.
const (
	Etcd        Program = "etcd"
	APIServer   Program = "kube-apiserver"
	Controllers Program = "kube-controller-manager"
	Scheduler   Program = "kube-scheduler"
	KubeProxy   Program = "kube-proxy"
	Kubectl     Program = "kubectl"
)

// Cluster are the programs that a cluster with nodes runs, in the order of their start; the last one is for its nodes.
func Cluster() []Program {
	return []Program{Etcd, APIServer, Controllers, Scheduler}
}

// Paths says where each program is, as an absolute path.
type Paths map[Program]string

// binaries is the module that pins the programs, and executable the program of it that holds them all: it runs the one
// whose name it is called by.
const binaries, executable = "test/controlplane/binaries", "programs"

// Ensure finds the programs, and builds them, all in one, unless they are up to date. If that takes long, it says so on
// standard error. Any number of processes may call it at once, and each looks once.
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
	// Without a version the servers call themselves v0.0.0-master, and clients that compare versions balk.
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

// environment has requirements from the nested module alone.
var environment = []string{"GOWORK=off", "GOFLAGS=-mod=readonly"}

// Tool is the path of a program for which a module in test/tools has a line "tool". The Go toolchain keeps it in its cache.
func Tool(ctx context.Context, module, name string) (string, error) {
	// The same flags as in the Makefile, so that nothing is built twice.
	return programs.Go(ctx, filepath.Join("test", "tools", module), []string{"GOWORK=off", "GOFLAGS=-tags=remove_all_sd"}, "tool", "-n", name)
}
