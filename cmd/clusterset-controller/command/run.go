// SPDX-License-Identifier: Apache-2.0

// Package command is the command line of clusterset-controller.
package command

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"runtime/debug"
	"strconv"
	"syscall"

	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/spf13/pflag"
	"k8s.io/klog/v2"

	"github.com/clusterset-dns/clusterset-dns/controller"
)

// Main runs the controller, with the version that was set when it was built, and returns the exit status.
func Main(version string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	defer klog.Flush()
	if err := Command(version).ExecuteContext(ctx); err != nil {
		klog.FromContext(ctx).Error(err, "The controller ended")
		return 1
	}
	return 0
}

func (f *flags) run(ctx context.Context) error {
	if err := f.complete(); err != nil {
		return err
	}
	f.Registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	logger := klog.FromContext(ctx)
	logger.Info("Starting clusterset-controller", "version", f.Version, "memoryLimit", debug.SetMemoryLimit(-1))
	for _, each := range []struct {
		flag, address, message string
		listener               *net.Listener
	}{
		{"--bind-address", f.bindAddress, "Serving metrics", &f.Listener},
		{"--health-address", f.healthAddress, "Serving health", &f.Health},
		{"--probe-address", f.probeAddress, "Answering probes", &f.Probes},
	} {
		if each.address == "" {
			continue
		}
		listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", each.address)
		if err != nil {
			return fmt.Errorf("%s: %w", each.flag, err)
		}
		*each.listener = listener
		logger.Info(each.message, "address", listener.Addr().String())
	}
	return controller.Run(ctx, f.Options)
}

// setLogging sets the log format of the whole process.
func setLogging(format string, flags *pflag.FlagSet) error {
	switch format {
	case "text":
		return nil // klog's own
	case "json":
	default:
		return fmt.Errorf("--logging-format %q: use text or json", format)
	}
	verbosity, _ := strconv.Atoi(flags.Lookup("v").Value.String()) // klog has validated it
	klog.SetSlogLogger(slog.New(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: slog.Level(-verbosity)})))
	return nil
}
