// SPDX-License-Identifier: Apache-2.0

package servers

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"time"

	"github.com/clusterset-dns/clusterset-dns/test/controlplane/process"
)

// ControllerSpec says what controller to start.
type ControllerSpec struct {
	// Program is what Build made of test/bench/controller.
	Program string
	// Cluster is the id of its cluster, and Kubeconfig the path of its credential there.
	Cluster, Kubeconfig string
	// Members are the paths of the credentials for other clusters, by their ids.
	Members map[string]string
	// Dir takes its log.
	Dir string
}

// StartController starts a controller and returns when it is ready. Whoever starts it stops it.
func StartController(ctx context.Context, spec ControllerSpec) (_ *Process, err error) {
	address, port, err := FreeAddress()
	if err != nil {
		return nil, err
	}
	debug, _, err := FreeAddress()
	if err != nil {
		return nil, err
	}
	args := []string{"-cluster-id", spec.Cluster, "-kubeconfig", spec.Kubeconfig, "-bind-address", address, "-debug-address", debug}
	for id, path := range spec.Members {
		args = append(args, "-member", id+"="+path)
	}
	started, err := process.Start(process.Spec{
		Name: "controller of " + spec.Cluster, Path: spec.Program, Args: args,
		LogFile: filepath.Join(spec.Dir, fmt.Sprintf("controller-%d.log", port)),
	})
	if err != nil {
		return nil, err
	}
	p := &Process{Process: started, debug: debug}
	if err := p.awaitReady(ctx, "http://"+address+"/readyz"); err != nil {
		_ = p.Kill() // the first error says why
		return nil, err
	}
	return p, nil
}

// awaitReady returns when the URL answers with 200.
func (p *Process) awaitReady(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
		if err != nil {
			return err
		}
		response, err := http.DefaultClient.Do(request)
		if err == nil {
			response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return nil
			}
		}
		if err := p.Err(); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w", url, ctx.Err())
		case <-ticker.C:
		}
	}
}
