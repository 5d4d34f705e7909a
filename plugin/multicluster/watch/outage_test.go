// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
)

// TestAfterAnOutageNothingIsMixed: an import that became headless is not answered from slices of the time when it was
// not, nor the other way round.
func TestAfterAnOutageNothingIsMixed(t *testing.T) {
	down := errors.New("connection refused")
	before := []any{importOf("web", mcsv1beta1.ClusterSetIP, "10.42.0.1")}
	after := []any{importOf("web", mcsv1beta1.Headless)}
	slices := []any{sliceOf("a", "web", "east", "10.1.0.1")}
	// A step is what happens, and what is answered then.
	type step struct {
		name string
		do   func(b *bench) error
		want string
	}
	read := func(s *store, list []any) error {
		s.asked(nil)
		return s.Replace(list, "2")
	}
	imports := func(list []any) func(*bench) error { return func(b *bench) error { return read(b.imports, list) } }
	endpoints := func(list []any) func(*bench) error { return func(b *bench) error { return read(b.slices, list) } }
	ask := func(err error, stores ...func(*bench) *store) func(*bench) error {
		return func(b *bench) error {
			for _, s := range stores {
				s(b).asked(err)
			}
			return nil
		}
	}
	ofImports, ofSlices := func(b *bench) *store { return b.imports }, func(b *bench) *store { return b.slices }
	ofNamespaces := func(b *bench) *store { return b.namespaces }
	pass := func(d time.Duration) func(*bench) error {
		return func(*bench) error {
			<-time.After(d)
			return nil
		}
	}
	outage := step{"outage", ask(down, ofImports, ofSlices), "10.42.0.1"}
	for name, steps := range map[string][]step{
		"imports first": {
			outage,
			{"imports are read", imports(after), "10.42.0.1"},
			{"slices are read", endpoints(slices), "10.1.0.1"},
		},
		"imports first, and others are gone": {
			{"there are others", func(b *bench) error { return b.imports.Add(importOf("gone", mcsv1beta1.ClusterSetIP, "10.42.0.9")) }, "10.42.0.1"},
			outage,
			{"imports are read", imports(after), "10.42.0.1"},
			{"slices are read", endpoints(slices), "10.1.0.1"},
		},
		"slices first": {
			outage,
			{"slices are read", endpoints(slices), "10.42.0.1"},
			{"imports are read", imports(after), "10.1.0.1"},
		},
		"slices go on where they were": {
			outage,
			{"slices are watched", ask(nil, ofSlices), "10.42.0.1"},
			{"a slice comes", func(b *bench) error { return b.slices.Add(slices[0]) }, "10.42.0.1"},
			{"imports are read", imports(after), "10.1.0.1"},
		},
		"a bookmark comes": {
			outage,
			{"imports are read", imports(after), "10.42.0.1"},
			{"nothing happened to slices", func(b *bench) error { b.slices.UpdateResourceVersion("3"); return nil }, ""},
		},
		"watches begin that are too old": {
			outage,
			{"both begin", ask(nil, ofImports, ofSlices), "10.42.0.1"},
			{"imports are read", imports(after), "10.42.0.1"},
			{"slices are read", endpoints(slices), "10.1.0.1"},
		},
		"slices stay away for good": {
			outage,
			{"imports are read", imports(after), "10.42.0.1"},
			{"time passes", pass(patience + time.Second), ""},
			{"another outage", ask(down, ofImports, ofNamespaces), ""},
			{"imports are read", imports(before), ""},
			{"namespaces are read", func(b *bench) error { return read(b.namespaces, nil) }, "10.42.0.1"},
		},
		"slices stay away": {
			outage,
			{"imports are read", imports(after), "10.42.0.1"},
			{"time passes", pass(patience - time.Second), "10.42.0.1"},
			{"more time passes", pass(2 * time.Second), ""},
			{"an import changes", imports(before), "10.42.0.1"},
			{"slices are read", endpoints(slices), "10.42.0.1"},
			{"an import changes", imports(after), "10.1.0.1"},
			{"another outage", ask(down, ofImports, ofSlices), "10.1.0.1"},
			{"imports are read", imports(before), "10.1.0.1"},
			{"slices are read", endpoints(nil), "10.42.0.1"},
		},
		"slices alone fail": {
			{"they fail", ask(down, ofSlices), "10.42.0.1"},
			{"an import changes", imports([]any{importOf("web", mcsv1beta1.ClusterSetIP, "10.42.0.2")}), "10.42.0.2"},
		},
		"what never was read is not waited for": {
			{"namespaces are forbidden", func(b *bench) error { b.namespaces.contact.healthy.Store(false); return nil }, "10.42.0.1"},
			{"and away", ask(down, ofNamespaces), "10.42.0.1"},
			outage,
			{"imports are read", imports(after), "10.42.0.1"},
			{"slices are read", endpoints(slices), "10.1.0.1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, Options{})
				b.free = func() {}
				x := b.View(config)
				ctx, cancel := context.WithCancel(t.Context())
				b.running.Go(func() { b.publishAll(ctx) })
				defer b.running.Wait()
				defer cancel()
				for _, s := range []*store{b.imports, b.slices, b.namespaces} {
					s.asked(nil)
				}
				put(t, b.imports.Replace(before, "1"))
				put(t, b.slices.Replace(nil, "1"))
				for _, step := range steps {
					put(t, step.do(b))
					synctest.Wait()
					if got := answer(x, "web"); got != step.want {
						t.Errorf("%s: %q, want %q", step.name, got, step.want)
					}
				}
			})
		})
	}
}
