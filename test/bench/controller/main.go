// SPDX-License-Identifier: Apache-2.0

// Command controller is clusterset-controller as it is measured: besides, it serves net/http/pprof. Its memory is bounded
// as in a container whose limit is given.
package main

import (
	"context"
	"flag"
	"fmt"
	"net"
	"net/http"
	_ "net/http/pprof" // on the default mux, which is served below
	"os"
	"os/signal"
	runtimedebug "runtime/debug"
	"syscall"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/clusterset-dns/clusterset-dns/controller"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "controller:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	options := controller.Options{}
	flag.StringVar(&options.Cluster, "cluster-id", "", "`id` of the local cluster")
	kubeconfig := flag.String("kubeconfig", "", "kubeconfig `file` of the local cluster")
	flag.StringVar(&options.Namespace, "namespace", "", "`namespace` of the members' Secrets")
	address := flag.String("bind-address", "", "`address` of /metrics, /healthz and /readyz")
	debug := flag.String("debug-address", "", "`address` of /debug/pprof")
	flag.BoolVar(&options.LeaderElection, "leader-elect", false, "elect a leader among replicas")
	memory := flag.Int64("memory-limit", 0, "soft limit of the memory in `bytes`; 0 means none")
	flag.Parse()
	if *memory > 0 {
		runtimedebug.SetMemoryLimit(*memory)
	}
	var err error
	if options.Config, err = clientcmd.BuildConfigFromFlags("", *kubeconfig); err != nil {
		return fmt.Errorf("kubeconfig of the local cluster: %w", err)
	}
	var listen net.ListenConfig
	if options.Listener, err = listen.Listen(ctx, "tcp", *address); err != nil {
		return err
	}
	profiles, err := listen.Listen(ctx, "tcp", *debug)
	if err != nil {
		return err
	}
	go func() { fmt.Fprintln(os.Stderr, http.Serve(profiles, nil)) }()
	return controller.Run(ctx, options)
}
