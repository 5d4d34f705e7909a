// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"math"
	"runtime/debug"
	"testing"

	"github.com/clusterset-dns/clusterset-dns/controller/limits"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
)

// TestOptions: missing options get defaults. TestWrongFlags covers invalid values.
func TestOptions(t *testing.T) {
	few := limits.Limits{Services: 1, Endpoints: 2, SliceBytes: 3}
	for given, want := range map[limits.Limits]limits.Limits{few: few, {}: limits.Default} {
		completed, err := Options{
			Cluster: "name.registry", Prefer: "cluster", Members: []member.Static{{Cluster: "west"}, {Cluster: "north"}}, MemberLimits: given,
		}.complete()
		if err != nil || completed.Namespace != member.DefaultNamespace || completed.Clock == nil || completed.Registry == nil ||
			completed.MemberLimits != want {
			t.Errorf("got %+v, %v", completed, err)
		}
	}
}

// TestMaxImportMemory: a fifth of Go's memory limit, else a default.
func TestMaxImportMemory(t *testing.T) {
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(-1))
	for limit, want := range map[int64]int{1 << 30: 1 << 30 / 5, math.MaxInt64: DefaultMaxImportMemory} {
		debug.SetMemoryLimit(limit)
		if got := maxImportMemory(); got != want {
			t.Errorf("limit %d: got %d", limit, got)
		}
	}
}
