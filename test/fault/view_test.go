// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

// A view is what is to be seen in a cluster, by service: the endpoints in the
// slices, and what is answered. A tilde marks an endpoint that is serving and
// terminating, rather than ready. IP is the IP of the import. "none" says that
// there is no import.
//
// That the other objects fit is part of it: the import is of the right type, is
// ready, and names the clusters that there are slices of; the Service behind it
// has its IPs; the ServiceExport, where there is one, is valid, ready and
// without conflicts.
type view map[string]string

const gone = "none -> NXDOMAIN"

var (
	healthy = view{
		"web":  "north/10.66.0.1 west/10.65.0.1 -> IP",
		"solo": "west/10.65.0.2 -> IP",
		"db":   "north/10.66.0.3 west/10.65.0.3 -> 10.65.0.3 10.66.0.3",
		"lone": "west/10.65.0.4 -> 10.65.0.4",
	}
	// westDemoted: there is another for web and db, and none for the rest.
	westDemoted = healthy.with("web", "north/10.66.0.1 west/10.65.0.1~ -> IP").
			with("db", "north/10.66.0.3 west/10.65.0.3~ -> 10.66.0.3")
)

// with is the view with another text for a service.
func (v view) with(name, text string) view {
	changed := maps.Clone(v)
	changed[name] = text
	return changed
}

// expect waits until the clusters, all where none is named, have the objects
// and give the answers. No clock moves.
func (b *bed) expect(want view, in ...*cluster) {
	b.Helper()
	if len(in) == 0 {
		in = b.all()
	}
	for _, c := range in {
		began := time.Now()
		b.eventually("view of "+c.Name(), func(ctx context.Context) error {
			got, err := b.lookFor(ctx, c, want, began)
			if err != nil {
				return err
			}
			var wrong []error
			for _, name := range slices.Sorted(maps.Keys(want)) {
				text := want[name]
				if c.away {
					_, text, _ = strings.Cut(text, "-> ")
				}
				if got[name] != text {
					wrong = append(wrong, fmt.Errorf("%s:\ngot  %s\nwant %s", name, got[name], text))
				}
			}
			return errors.Join(wrong...)
		})
	}
}

// everywhere is expect with a view of its own for some clusters.
func (b *bed) everywhere(want view, but map[*cluster]view) {
	b.Helper()
	for _, c := range b.all() {
		if other, ok := but[c]; ok {
			b.expect(other, c)
		} else {
			b.expect(want, c)
		}
	}
}

// arrives is expect in all clusters while time moves on: a list that lacks
// something is believed with the heartbeat that comes after it.
func (b *bed) arrives(want view) {
	b.Helper()
	for _, c := range b.all() {
		began := time.Now()
		b.eventually("view of "+c.Name()+" in time", func(ctx context.Context) error {
			got, err := b.lookFor(ctx, c, want, began)
			if err == nil && !maps.Equal(got, want) {
				err = fmt.Errorf("got  %v\nwant %v", got, want)
			}
			if err != nil {
				b.patiently()
			}
			return err
		})
	}
}

// objects are those of the namespace that the controller deals with.
type objects struct {
	imports map[string]v1beta1.ServiceImport
	exports map[string]v1beta1.ServiceExport
	// derived are the Services behind imports, by their own names.
	derived map[string]corev1.Service
	// endpoints and sources are those of the slices, by service.
	endpoints, sources map[string][]string
	// versions are the resource versions of them all.
	versions map[string]string
}

func (b *bed) objects(ctx context.Context, c *cluster) (*objects, error) {
	o := &objects{
		imports: map[string]v1beta1.ServiceImport{}, exports: map[string]v1beta1.ServiceExport{}, derived: map[string]corev1.Service{},
		endpoints: map[string][]string{}, sources: map[string][]string{}, versions: map[string]string{},
	}
	// Where the CRDs are missing there are no objects of them.
	imports, err := c.mcs.MulticlusterV1beta1().ServiceImports(b.namespace).List(ctx, metav1.ListOptions{})
	if ignoreNotFound(err) != nil {
		return nil, err
	} else if err == nil {
		for _, each := range imports.Items {
			o.imports[each.Name], o.versions["ServiceImport "+each.Name] = each, each.ResourceVersion
		}
	}
	exports, err := c.mcs.MulticlusterV1beta1().ServiceExports(b.namespace).List(ctx, metav1.ListOptions{})
	if ignoreNotFound(err) != nil {
		return nil, err
	} else if err == nil {
		for _, each := range exports.Items {
			o.exports[each.Name], o.versions["ServiceExport "+each.Name] = each, each.ResourceVersion
		}
	}
	services, err := c.CoreV1().Services(b.namespace).List(ctx, metav1.ListOptions{LabelSelector: export.LabelService})
	if err != nil {
		return nil, err
	}
	for _, each := range services.Items {
		o.derived[each.Name], o.versions["Service "+each.Name] = each, each.ResourceVersion
	}
	list, err := c.DiscoveryV1().EndpointSlices(b.namespace).List(ctx, metav1.ListOptions{LabelSelector: export.LabelService})
	if err != nil {
		return nil, err
	}
	for _, slice := range list.Items {
		o.versions["EndpointSlice "+slice.Name] = slice.ResourceVersion
		name, source := slice.Labels[export.LabelService], slice.Labels[export.LabelSourceCluster]
		if !slices.Contains(o.sources[name], source) {
			o.sources[name] = append(o.sources[name], source)
		}
		for _, endpoint := range slice.Endpoints {
			o.endpoints[name] = append(o.endpoints[name], source+"/"+strings.Join(endpoint.Addresses, ",")+mark(endpoint.Conditions))
		}
	}
	return o, nil
}

// answers are those that a cluster gives.
func (b *bed) answers(ctx context.Context, c *cluster, names []string) (view, error) {
	seen := view{}
	for _, name := range names {
		answer, err := b.answer(ctx, c, name)
		if err != nil {
			return nil, err
		}
		seen[name] = answer
	}
	return seen, nil
}

// lookFor is look for what is wanted. While an answer shows that it is not there
// yet, the objects are not asked for, which takes much longer, unless so much
// time has passed that it is of interest why.
func (b *bed) lookFor(ctx context.Context, c *cluster, want view, began time.Time) (view, error) {
	seen, err := b.answers(ctx, c, want.services())
	if err != nil {
		return nil, err
	}
	if time.Since(began) < 5*time.Second {
		for name, text := range want {
			_, answer, _ := strings.Cut(text, "-> ")
			if got := seen[name]; got != answer && (answer != "IP" || !strings.HasPrefix(got, ofImports)) {
				return nil, fmt.Errorf("%s is answered with %s, want %s", name, got, answer)
			}
		}
	}
	return b.behind(ctx, c, seen)
}

// behind makes answers a view: it adds the objects behind them.
func (b *bed) behind(ctx context.Context, c *cluster, seen view) (view, error) {
	if c.away {
		for name, answer := range seen {
			if answer == c.ips[name] {
				seen[name] = "IP"
			}
		}
		return seen, nil
	}
	if c.stop != nil {
		queue, err := c.metric("clusterset_controller_queue_length", map[string]string{})
		if err != nil {
			return nil, err
		}
		if waiting := queue.GetGauge().GetValue(); waiting > 0 {
			return nil, fmt.Errorf("%v services wait to be looked at", waiting)
		}
	}
	o, err := b.objects(ctx, c)
	if err != nil {
		return nil, err
	}
	for name, answer := range seen {
		slices.Sort(o.endpoints[name])
		serviceImport, imported := o.imports[name]
		if !imported {
			seen[name] = strings.Join(append(o.endpoints[name], "none"), " ") + " -> " + answer
		} else {
			if len(serviceImport.Spec.IPs) == 1 {
				c.ips[name] = serviceImport.Spec.IPs[0]
				b.allowed.give(c.ips[name])
				if answer == c.ips[name] {
					answer = "IP"
				}
			}
			seen[name] = strings.Join(o.endpoints[name], " ") + " -> " + answer
		}
		if wrong := o.wrong(types.NamespacedName{Namespace: b.namespace, Name: name}); wrong != nil {
			seen[name] += ", but " + wrong.Error()
		}
	}
	return seen, nil
}

// wrong is what does not fit among the objects of a service.
func (o *objects) wrong(service types.NamespacedName) error {
	name := service.Name
	var wrong []error
	add := func(format string, args ...any) { wrong = append(wrong, fmt.Errorf(format, args...)) }
	derived, behind := o.derived[export.DerivedServiceName(service)]
	serviceImport, imported := o.imports[name]
	switch {
	case !imported && behind:
		add("a Service stands behind no import")
	case !imported:
	case serviceImport.Spec.Type == v1beta1.Headless:
		if behind || len(serviceImport.Spec.IPs) > 0 {
			add("it is headless and has an IP")
		}
	case !behind || !slices.Equal(derived.Spec.ClusterIPs, serviceImport.Spec.IPs):
		add("its IPs are %v, those of its Service %v", serviceImport.Spec.IPs, derived.Spec.ClusterIPs)
	}
	if imported {
		var clusters []string
		for _, each := range serviceImport.Status.Clusters {
			clusters = append(clusters, each.Cluster)
		}
		slices.Sort(o.sources[name])
		if !slices.Equal(clusters, o.sources[name]) {
			add("it is of %v and has slices of %v", clusters, o.sources[name])
		}
		if !meta.IsStatusConditionTrue(serviceImport.Status.Conditions, "Ready") {
			add("its conditions are %v", serviceImport.Status.Conditions)
		}
	}
	if serviceExport, ok := o.exports[name]; ok {
		conditions := serviceExport.Status.Conditions
		if !meta.IsStatusConditionTrue(conditions, "Valid") || !meta.IsStatusConditionTrue(conditions, "Ready") || !meta.IsStatusConditionFalse(conditions, "Conflict") {
			add("the conditions of its export are %v", conditions)
		}
	}
	return errors.Join(wrong...)
}

// calm asserts that nothing is written any more but Leases, while all live.
func (b *bed) calm() {
	b.Helper()
	before := map[*cluster]map[string]string{}
	versions := func(c *cluster) map[string]string {
		o, err := b.objects(b.Context(), c)
		b.must(err)
		return o.versions
	}
	for _, c := range b.all() {
		before[c] = versions(c)
	}
	b.pass(6*tick, b.pairs()...)
	for _, c := range b.all() {
		if after := versions(c); !maps.Equal(before[c], after) {
			b.Errorf("%s is written to without need:\nbefore %v\nafter  %v", c.Name(), before[c], after)
		}
	}
}
