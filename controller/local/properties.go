// SPDX-License-Identifier: Apache-2.0

package local

import (
	"context"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/clusterset-dns/clusterset-dns/controller/listwatch"
	"github.com/clusterset-dns/clusterset-dns/controller/properties"
)

const (
	// propertiesEvery is the time between two lists of the ClusterProperties, and propertiesPatience bounds one.
	propertiesEvery    = time.Minute
	propertiesPatience = 30 * time.Second
	// maxProperties bounds how many are read, in the order of their names. Far fewer fit into the heartbeat.
	maxProperties = 100
)

// Properties are the ClusterProperties of the local cluster (KEP-2149), as far as its heartbeat has room for them: each
// cluster of the set has the same view of them. All but Run may be called concurrently.
type Properties struct {
	client  dynamic.Interface
	clock   clock.WithTicker
	changed atomic.Pointer[func()]
	known   chan struct{}
	last    atomic.Pointer[encodedProperties]
	omitted int // as reported
	failing bool
}

// encodedProperties is immutable.
type encodedProperties struct {
	text string
	all  map[string]string
}

// NewProperties returns Properties that are not known yet.
func NewProperties(client dynamic.Interface, now clock.WithTicker) *Properties {
	p := &Properties{client: client, clock: now, known: make(chan struct{})}
	p.last.Store(&encodedProperties{})
	return p
}

// Handle sets what is called after each later change. It must not block.
func (p *Properties) Handle(changed func()) { p.changed.Store(&changed) }

// WaitForSync returns true once the first list was answered, or false if the context ends before.
func (p *Properties) WaitForSync(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return false
	case <-p.known:
		return true
	}
}

// All returns the properties, name to value. The map is shared and must not be changed.
func (p *Properties) All() map[string]string { return p.last.Load().all }

// Text returns the properties as the annotation properties.Annotation has them.
func (p *Properties) Text() string { return p.last.Load().text }

// Run lists the properties every minute until the context ends. A cluster without the CRD has none. If they cannot be
// read, the last known stay.
func (p *Properties) Run(ctx context.Context) {
	err := listwatch.Retry(ctx, func(ctx context.Context) (bool, error) {
		err := p.read(ctx)
		// A role of a version before lacks the right. Clusters of such a set have no properties.
		return err == nil || apierrors.IsForbidden(err), nil
	})
	if err != nil {
		return // the context ended
	}
	close(p.known)
	ticker := p.clock.NewTicker(propertiesEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
		}
		_ = p.read(ctx) // it reports errors
	}
}

// read lists the properties once, and reports when that begins or ceases to fail.
func (p *Properties) read(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, propertiesPatience)
	defer cancel()
	all, err := p.list(limited)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		if !p.failing {
			klog.FromContext(ctx).Error(err, "Cannot list the ClusterProperties of this cluster; the last known ones stay")
		}
		p.failing = true
		return err
	case p.failing:
		klog.FromContext(ctx).Info("Listed the ClusterProperties of this cluster again")
		p.failing = false
	}
	text, omitted := properties.Encode(all)
	if len(omitted) != p.omitted {
		p.omitted = len(omitted)
		if len(omitted) > 0 {
			klog.FromContext(ctx).Error(nil, "The ClusterProperties of this cluster do not fit into its heartbeat. "+
				"Shorten them: selectors do not see those that were omitted", "bytes", properties.MaxBytes, "omitted", omitted)
		}
	}
	if text == p.Text() {
		return nil
	}
	fit, err := properties.Parse(text)
	if err != nil {
		return err
	}
	p.last.Store(&encodedProperties{text, fit})
	if changed := p.changed.Load(); changed != nil {
		(*changed)()
	}
	return nil
}

// list returns all properties.
func (p *Properties) list(ctx context.Context) (map[string]string, error) {
	for _, version := range propertyVersions {
		list, err := p.client.Resource(clusterProperties.WithVersion(version)).List(ctx,
			metav1.ListOptions{Limit: maxProperties})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		all := make(map[string]string, len(list.Items))
		for _, item := range list.Items {
			if value, found, err := unstructured.NestedString(item.Object, "spec", "value"); found && err == nil {
				all[item.GetName()] = value
			}
		}
		return all, nil
	}
	return nil, nil
}
