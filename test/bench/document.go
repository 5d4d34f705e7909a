// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/clusterset-dns/clusterset-dns/test/bench/figure"
	"github.com/clusterset-dns/clusterset-dns/test/bench/wire"
)

// describe tells when, where and with what versions the run was, in Markdown.
func describe(ctx context.Context, o options, began time.Time, load string) (string, error) {
	model, memory := "unknown processor", ""
	if value := firstValue("/proc/cpuinfo", "model name"); value != "" {
		model = value
	}
	if value := firstValue("/proc/meminfo", "MemTotal"); value != "" {
		var kibibytes float64
		if _, err := fmt.Sscanf(value, "%f kB", &kibibytes); err == nil {
			memory = fmt.Sprintf(", %.0f GiB of memory", kibibytes/(1<<20))
		}
	}
	version := "unknown"
	if output, err := exec.CommandContext(ctx, "git", "describe", "--tags", "--always",
		"--dirty").Output(); err == nil {
		version = strings.TrimSpace(string(output))
	}
	kubernetes, err := requirement(ctx, "k8s.io/kubernetes")
	if err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "- Taken on %s with %d rounds; load average before: %s.\n",
		began.UTC().Format("2 January 2006, 15:04 UTC"), o.rounds, load)
	if o.quick {
		b.WriteString("- **A quick run: its figures mean nothing.**\n")
	}
	fmt.Fprintf(&b, "- Machine: %d cores (%s)%s; a shared virtual machine.\n", runtime.NumCPU(), model, memory)
	fmt.Fprintf(&b, "- Versions: clusterset-dns %s, CoreDNS %s, %s, Kubernetes %s,\n  client-go %s, %s/%s.\n", version,
		dependency("github.com/coredns/coredns"), runtime.Version(), kubernetes, dependency("k8s.io/client-go"),
		runtime.GOOS, runtime.GOARCH)
	return b.String(), nil
}

// loadAverage is how many processes wanted to run, in the mean of the last minute.
func loadAverage() string {
	content, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	first, _, _ := strings.Cut(string(content), " ")
	return first
}

// firstValue is the value of the first line with that key in a file of lines "key: value".
func firstValue(path, key string) string {
	file, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		if k, value, ok := strings.Cut(lines.Text(), ":"); ok && strings.TrimSpace(k) == key {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// dependency is the version of a module that this program was built with.
func dependency(path string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, module := range info.Deps {
		if module.Path == path {
			return module.Version
		}
	}
	return "unknown"
}

// requirement is the version of a module that the control planes are built from.
func requirement(ctx context.Context, path string) (string, error) {
	directory, err := exec.CommandContext(ctx, "go", "list", "-f", "{{.Dir}}",
		"github.com/clusterset-dns/clusterset-dns/test/controlplane").Output()
	if err != nil {
		return "", fmt.Errorf("find the module of the control planes: %w", err)
	}
	list := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Version}}", path)
	list.Dir = strings.TrimSpace(string(directory)) + "/binaries"
	list.Env = append(os.Environ(), "GOWORK=off")
	version, err := list.Output()
	if err != nil {
		return "", fmt.Errorf("find the version of %s: %w", path, err)
	}
	return strings.TrimSpace(string(version)), nil
}

// document is what a run prints.
func document(about string, tables []figure.Table) string {
	count := figure.Count(tables)
	var b strings.Builder
	b.WriteString(`# Benchmarks

Our CoreDNS (*ours*) beside CoreDNS's plugin *kubernetes* with its option *multicluster* (*stock*),
on the same objects of a real API server. *Prebuilt* is a CoreDNS server that looks up prebuilt
records and writes them, the limit for any plugin. In parentheses: ours divided by the other, the
median of all rounds.

`)
	b.WriteString(about)
	fmt.Fprintf(&b, "- Goals: %d met, %d missed, %d not measured.\n\n", count[figure.Met], count[figure.Missed],
		count[figure.NotMeasured])
	for i, table := range tables {
		if i > 0 {
			b.WriteString("\n")
		}
		b.WriteString(table.Markdown())
	}
	if err := wire.HaveDnsperf(); err != nil {
		fmt.Fprintf(&b, "\nSome figures were not measured: %v.\n", err)
	}
	return b.String()
}
