// SPDX-License-Identifier: Apache-2.0

// Package assets provides the programs of a Kubernetes control plane, and kube-proxy.
//
// They are taken from the directory that the environment variable KUBEBUILDER_ASSETS names, as far as it holds them.
// The others are built by the Go toolchain from the nested module test/controlplane/binaries, which pins them, into a
// cache outside the checkout, and are reused from there: all of them in one build of one executable.
package assets

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Program is the file name of one of the programs.
type Program string

// The programs that there are.
const (
	Etcd        Program = "etcd"
	APIServer   Program = "kube-apiserver"
	Controllers Program = "controllers"
	Scheduler   Program = "kube-scheduler"
	KubeProxy   Program = "kube-proxy"
	Kubectl     Program = "kubectl"
	Kwok        Program = "kwok"
)

// Cluster are the programs that a cluster with nodes runs, in the order of their start; the last two are for its nodes.
func Cluster() []Program {
	return []Program{Etcd, APIServer, Controllers, Scheduler, Kwok}
}

// All is every program, in alphabetical order.
func All() []Program {
	return []Program{Controllers, Etcd, APIServer, KubeProxy, Scheduler, Kubectl, Kwok}
}

// The environment variables that say where programs are.
const (
	// DirectoryVariable names a directory of ready programs, as controller-runtime's envtest uses it.
	DirectoryVariable = "KUBEBUILDER_ASSETS"
	// CacheVariable names the directory to use instead of clusterset-dns in the user's cache directory.
	CacheVariable = "CLUSTERSET_DNS_CACHE"
)

// Paths says where each program is, as an absolute path.
type Paths map[Program]string

// Ensure finds the programs, and builds all if one is missing. If it builds, or waits for another process that does, it
// writes a line to progress before and after; otherwise it writes nothing. Any number of processes may call it at once.
func Ensure(ctx context.Context, progress io.Writer, programs ...Program) (Paths, error) {
	paths := Paths{}
	missing := programs
	if directory := os.Getenv(DirectoryVariable); directory != "" {
		directory, err := filepath.Abs(directory)
		if err != nil {
			return nil, fmt.Errorf("resolve %s: %w", DirectoryVariable, err)
		}
		missing = paths.find(directory, missing)
	}
	if len(missing) == 0 {
		return paths, nil
	}
	cache, err := openCache(ctx)
	if err != nil {
		return nil, err
	}
	missing = paths.find(cache.directory, missing)
	if len(missing) == 0 {
		return paths, nil
	}
	if err := cache.fill(ctx, progress); err != nil {
		return nil, err
	}
	if missing = paths.find(cache.directory, missing); len(missing) > 0 {
		return nil, fmt.Errorf("built programs are missing in %s: %v; remove that directory to build them anew",
			cache.directory, missing)
	}
	return paths, nil
}

// find adds the programs that directory holds, and returns the others.
func (p Paths) find(directory string, programs []Program) (missing []Program) {
	for _, program := range programs {
		path := filepath.Join(directory, string(program))
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0 {
			p[program] = path
		} else {
			missing = append(missing, program)
		}
	}
	return missing
}
