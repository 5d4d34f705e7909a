// SPDX-License-Identifier: Apache-2.0

package local

import (
	"cmp"
	"context"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"github.com/clusterset-dns/clusterset-dns/controller/scope"
)

// propertiesEvery is the time between two lists of the ClusterProperties, and bounds each list: its answer may be lost.
const propertiesEvery = 30 * time.Second

// Properties are the ClusterProperties of the local cluster (KEP-2149), as far as its heartbeat has room for them, so that each
// cluster of the set sees the same. Call Begin before Run; the other methods may be called concurrently.
type Properties struct {
	// network replaces the value of scope.NetworkProperty, unless it is empty.
	network string
	client  dynamic.Interface
	clock   clock.WithTicker
	last    atomic.Pointer[map[string]string] // none while they are unknown
	cut     bool                              // the last list did not fit
}

// NewProperties returns Properties that are unknown until Begin, except the network, if it is not empty.
func NewProperties(client dynamic.Interface, now clock.WithTicker, network string) *Properties {
	return &Properties{client: client, clock: now, network: network}
}

// All returns the properties, name to value, nil while they are unknown. The map is shared and must not be changed.
func (p *Properties) All() map[string]string { return ptr.Deref(p.last.Load(), nil) }

// Network returns the network of the pods of the local cluster, empty for the default one and while it is unknown.
func (p *Properties) Network() string { return cmp.Or(p.network, p.All()[scope.NetworkProperty]) }

// Text returns the properties as the annotation scope.PropertiesAnnotation has them, empty while they are unknown.
func (p *Properties) Text() string {
	if all := p.All(); all != nil {
		text, _ := scope.EncodeProperties(all)
		return text
	}
	return ""
}

// Begin lists the properties for a new leader. If that fails, those that the previous leader published count; empty means
// unknown. It returns once the network is known, or if the right to list is missing, and fails only if the context ends.
func (p *Properties) Begin(ctx context.Context, published string) error {
	return Await(ctx, "the ClusterProperties of this cluster", func(ctx context.Context) (bool, error) {
		err := p.read(ctx)
		known := err == nil || published != "" && p.set(published) == nil
		if known || p.network != "" || apierrors.IsForbidden(err) {
			return true, nil
		}
		return false, err
	})
}

// Run lists the properties every 30 s until the context ends, and calls changed, which must not block, after each change. A
// cluster without the CRD has no properties. While they cannot be read, the last known ones stay. The first failure is logged.
func (p *Properties) Run(ctx context.Context, changed func()) {
	for failing := false; ; {
		select {
		case <-ctx.Done():
			return
		case <-p.clock.After(propertiesEvery):
		}
		before := p.Text()
		limited, cancel := context.WithTimeout(ctx, propertiesEvery)
		err := p.read(limited)
		if cancel(); err != nil && !failing && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "Cannot list the ClusterProperties of this cluster; the last known ones stay")
		}
		failing = err != nil
		if p.Text() != before {
			changed()
		}
	}
}

// read lists the properties once.
func (p *Properties) read(ctx context.Context) error {
	all, err := listProperties(ctx, p.client)
	if err != nil {
		return err
	}
	if p.network != "" {
		all[scope.NetworkProperty] = p.network
	}
	text, complete := scope.EncodeProperties(all)
	if !complete && !p.cut {
		klog.FromContext(ctx).Error(nil, "The ClusterProperties of this cluster do not fit into its heartbeat. Shorten them: selectors "+
			"see none but the id, the cluster set and the network", "bytes", scope.MaxBytes)
	}
	p.cut = !complete
	return p.set(text)
}

// set parses a text, in the form of the annotation, into the last known properties.
func (p *Properties) set(text string) error {
	all, err := scope.ParseProperties(text)
	if err != nil {
		return err
	}
	p.last.Store(&all)
	return nil
}

// listProperties returns all ClusterProperties, name to value; none without the CRD.
func listProperties(ctx context.Context, client dynamic.Interface) (map[string]string, error) {
	all := map[string]string{}
	list, err := ListServed(ctx, client, clusterProperties, propertyVersions, metav1.NamespaceAll, metav1.ListOptions{})
	if apierrors.IsNotFound(err) {
		return all, nil
	}
	if err != nil {
		return nil, err
	}
	for i := range list.Items {
		item := &list.Items[i]
		if value, found, err := unstructured.NestedString(item.Object, "spec", "value"); found && err == nil {
			all[item.GetName()] = value
		}
	}
	return all, nil
}

// ListServed lists the objects of a namespace, empty for all, in the first of the versions that the API server serves. If it
// serves none, the error is NotFound.
func ListServed(
	ctx context.Context, client dynamic.Interface, resource schema.GroupResource, versions []string, namespace string,
	options metav1.ListOptions,
) (list *unstructured.UnstructuredList, err error) {
	for _, version := range versions {
		list, err = client.Resource(resource.WithVersion(version)).Namespace(namespace).List(ctx, options)
		if !apierrors.IsNotFound(err) {
			break
		}
	}
	return list, err
}
