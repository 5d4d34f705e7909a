// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/clusterset-dns/clusterset-dns/test/controlplane"
)

// BenchmarkStart measures how long clusters take, from nothing to a first ready pod, and the memory of each then.
func BenchmarkStart(b *testing.B) {
	for _, count := range []int{1, 2, 4} {
		b.Run(fmt.Sprintf("clusters=%d", count), func(b *testing.B) {
			var options []controlplane.Options
			for i := range count {
				options = append(options, controlplane.Options{Name: fmt.Sprintf("bench-%d", i)})
			}
			var memory int
			for b.Loop() {
				started, err := controlplane.StartAll(b.Context(), options...)
				if err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				for _, cluster := range started {
					memory += proportionalSize(b, cluster)
				}
				if err := controlplane.StopAll(started...); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
			}
			b.ReportMetric(float64(memory)/float64(b.N*count*1024), "MiB/cluster")
			b.ReportMetric(b.Elapsed().Seconds()/float64(b.N), "s/start")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// proportionalSize is the memory of all processes of a cluster in KiB; what they share counts once.
func proportionalSize(b *testing.B, cluster *controlplane.Cluster) (total int) {
	b.Helper()
	for program, component := range cluster.Components() {
		rollup, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", component.PID()))
		if err != nil {
			b.Fatal(err)
		}
		for line := range strings.Lines(string(rollup)) {
			if fields := strings.Fields(line); fields[0] == "Pss:" {
				size, err := strconv.Atoi(fields[1])
				if err != nil {
					b.Fatal(err)
				}
				total += size
				b.Logf("%s: %d MiB", program, size/1024)
			}
		}
	}
	return total
}
