// SPDX-License-Identifier: Apache-2.0

package multicluster

import (
	"bytes"
	"context"
	golog "log"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
	"weak"

	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/record"
	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/watch"
)

func TestLocalAddresses(t *testing.T) {
	for name, test := range map[string]struct {
		hosts []string
		want  []netip.Addr
	}{
		"global": {
			[]string{"10.0.0.2", "169.254.20.10", "127.0.0.1", "10.0.0.1", "10.0.0.2"},
			[]netip.Addr{netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")},
		},
		"link-local":      {[]string{"169.254.20.10", "127.0.0.1"}, []netip.Addr{netip.MustParseAddr("169.254.20.10")}},
		"loopback":        {[]string{"127.0.0.1", "fe80::1%lo"}, []netip.Addr{netip.MustParseAddr("127.0.0.1")}},
		"none with sense": {[]string{"fe80::1%lo"}, nil},
	} {
		if got := localAddresses(test.hosts); !slices.Equal(got, test.want) {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}

// TestASourceIsShared: a reload, or a server block that shares a source, does not force a garbage collection, which
// would delay queries, and logs nothing if the lists are in time. The source keeps no reference to a replaced plugin:
// the next plugins in its chain, such as kubernetes, hold much memory.
func TestASourceIsShared(t *testing.T) {
	var logged strings.Builder
	output := golog.Writer()
	golog.SetOutput(&logged)
	t.Cleanup(func() { golog.SetOutput(output) })
	api := newAPIServer(t, "10.42.0.1")
	start := func(ctx context.Context) (m *Multicluster, collections uint32) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		m = newTestPlugin()
		m.options.Kubeconfig = api.kubeconfig
		if err := m.start(ctx); err != nil || m.state() == nil {
			t.Fatalf("it has no answers: %v", err)
		}
		stacks := make([]byte, 1<<20)
		for bytes.Contains(stacks[:runtime.Stack(stacks, true)], []byte("multicluster.(*Multicluster).start")) {
			runtime.Gosched()
		}
		runtime.ReadMemStats(&after)
		return m, after.NumForcedGC - before.NumForcedGC
	}
	ctx, stop := context.WithCancel(t.Context())
	m, _ := start(ctx)
	first := weak.Make(m)
	m, collections := start(t.Context())
	if collections > 0 {
		t.Error("memory is collected, and nothing was listed")
	}
	golog.SetOutput(output)
	if strings.Contains(logged.String(), "Corefile") {
		t.Errorf("logged is %s", logged.String())
	}
	stop()
	for deadline := time.Now().Add(patience); first.Value() != nil && time.Now().Before(deadline); runtime.GC() {
	}
	if first.Value() != nil {
		t.Error("the first plugin is still in memory")
	}
	runtime.KeepAlive(m)
}

// TestRightsInTheNamespacesThatAreListedSuffice: if one namespace is forbidden, the source has no state.
func TestRightsInTheNamespacesThatAreListedSuffice(t *testing.T) {
	for _, test := range []struct {
		granted []string
		options watch.Options
		missing []watch.Resource
	}{
		{[]string{"a", "b"}, watch.Options{Namespaces: []string{"b", "a", "b"}}, nil},
		{[]string{"a"}, watch.Options{Namespaces: []string{"a", "b"}, NoEndpoints: true}, []watch.Resource{watch.ServiceImports}},
	} {
		api := newAPIServer(t, "10.42.0.1")
		api.granted, test.options.Kubeconfig = test.granted, api.kubeconfig
		s, err := watch.Open(t.Context(), test.options, &newTestPlugin().config)
		must(t, err)
		<-s.Settled()
		state := s.Index().State()
		if missing := s.Missing(); !slices.Equal(missing, test.missing) || (state == nil) != (missing != nil) {
			t.Fatalf("of %v, %v is granted: missing are %v, the state %v", test.options.Namespaces, test.granted, missing, state)
		}
		if totals := s.Index().Totals(); state != nil && (totals.ClusterSetIP != 2 || totals.Skips[record.Undecodable] != 2) {
			t.Errorf("served is %+v, want a service of each namespace", totals)
		}
	}
}
