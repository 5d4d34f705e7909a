// SPDX-License-Identifier: Apache-2.0

package multicluster

import (
	"context"
	"fmt"
	golog "log"
	"runtime"
	"strings"
	"testing"
	"time"
	"weak"
)

func TestLocalAddresses(t *testing.T) {
	for hosts, want := range map[string]string{
		"10.0.0.2 169.254.20.10 fe80::1%lo 10.0.0.1 10.0.0.2": "[10.0.0.1 10.0.0.2 169.254.20.10]", // as of NodeLocal DNSCache
		"127.0.0.1":  "[127.0.0.1]",
		"fe80::1%lo": "[]",
	} {
		if got := fmt.Sprint(localAddresses(strings.Fields(hosts))); got != want {
			t.Errorf("%s: %s, want %s", hosts, got, want)
		}
	}
}

// TestASourceIsShared: the source keeps no reference to a replaced plugin: the next plugins in its chain, such as
// kubernetes, hold much memory. Nothing is logged if the lists are in time.
func TestASourceIsShared(t *testing.T) {
	var logged strings.Builder
	output := golog.Writer()
	golog.SetOutput(&logged)
	t.Cleanup(func() { golog.SetOutput(output) })
	api := newAPIServer(t, "10.42.0.1")
	start := func(ctx context.Context) *Multicluster {
		m := newTestPlugin()
		m.options.Kubeconfig = api.kubeconfig
		if err := m.start(ctx, nil); err != nil || m.state() == nil {
			t.Fatalf("it has no answers: %v", err)
		}
		return m
	}
	ctx, stop := context.WithCancel(t.Context())
	first := weak.Make(start(ctx))
	m := start(t.Context())
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
