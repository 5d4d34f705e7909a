// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"reflect"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/test/soak/judge"
	"github.com/clusterset-dns/clusterset-dns/test/soak/truth"
)

// namespace is that of all services.
const namespace = "soak"

// A service is what one cluster has under one name.
type service struct {
	name                string
	present, exported   bool
	headless            bool
	ports               []truth.Port
	affinity            string
	labels, annotations map[string]string
	endpoints           []truth.Endpoint
}

// clone shares nothing with the service.
func (s service) clone() service {
	s.ports, s.endpoints = slices.Clone(s.ports), slices.Clone(s.endpoints)
	s.labels, s.annotations = maps.Clone(s.labels), maps.Clone(s.annotations)
	return s
}

func (s service) state() judge.State {
	return judge.State{Exported: s.exported, Present: s.present, Endpoints: slices.Clone(s.endpoints)}
}

// shared tells whether the service is exported and there.
func (s service) shared() bool { return s.present && s.exported }

// A writer changes the services of one cluster.
type writer struct {
	*cluster
	services map[string]service
	serial   int // of the last endpoint
}

// fresh is an endpoint with an address that nobody ever had.
func (w *writer) fresh() truth.Endpoint {
	w.serial++
	base := byte(100 + slices.Index(names, w.Name()))
	return truth.Endpoint{
		Address: netip.AddrFrom4([4]byte{10, base, byte(w.serial >> 8), byte(w.serial)}),
		Host:    fmt.Sprintf("pod-%d", w.serial),
		Ready:   true, Serving: true,
	}
}

// write brings the cluster from what it has to next. A change of the type takes
// a new Service, because its IP is immutable.
func (w *writer) write(ctx context.Context, next service) {
	now := w.services[next.name]
	if now.present && next.present && now.headless != next.headless {
		gone := next.clone()
		gone.present = false
		w.write(ctx, gone)
		now = w.services[next.name]
	}
	w.journal.note("%s: %s becomes %+v", w.Name(), next.name, next)
	w.journal.changed.Store(&next.name)
	written := w.judge.Change(w.Name(), next.name, next.state(), time.Now())
	if next.present && (!now.present || now.affinity != next.affinity || !slices.Equal(now.ports, next.ports)) {
		w.put(ctx, "v1", "Service", next.serviceObject())
	}
	if now.present && !next.present {
		w.retry(ctx, func() error {
			return w.Client().CoreV1().Services(namespace).Delete(ctx, next.name, metav1.DeleteOptions{})
		})
	}
	if !slices.Equal(now.endpoints, next.endpoints) || !slices.Equal(now.ports, next.ports) {
		w.put(ctx, "discovery.k8s.io/v1", "EndpointSlice", next.sliceObject())
	}
	exportChanged := !maps.Equal(now.labels, next.labels) || !maps.Equal(now.annotations, next.annotations)
	switch {
	case next.exported && (!now.exported || exportChanged):
		w.put(ctx, v1beta1.GroupVersion.String(), v1beta1.ServiceExportKindName, next.exportObject())
	case now.exported && !next.exported:
		w.retry(ctx, func() error {
			return w.mcs.MulticlusterV1beta1().ServiceExports(namespace).Delete(ctx, next.name, metav1.DeleteOptions{})
		})
	}
	written(time.Now())
	w.services[next.name] = next
}

// put makes an object what it should be.
func (w *writer) put(ctx context.Context, version, kind string, object metav1.Object) {
	content, err := json.Marshal(object)
	if err == nil {
		var fields map[string]any
		if err = json.Unmarshal(content, &fields); err == nil {
			fields["apiVersion"], fields["kind"] = version, kind
			delete(fields, "status")
			content, err = json.Marshal(fields)
		}
	}
	if err != nil {
		w.journal.wrong("encode %s %s: %v", kind, object.GetName(), err)
		return
	}
	w.retry(ctx, func() error {
		options := metav1.PatchOptions{FieldManager: "soak", Force: ptr.To(true)}
		var err error
		switch kind {
		case "Service":
			_, err = w.Client().CoreV1().Services(namespace).Patch(ctx, object.GetName(), types.ApplyPatchType, content, options)
		case "EndpointSlice":
			_, err = w.Client().DiscoveryV1().EndpointSlices(namespace).Patch(ctx, object.GetName(), types.ApplyPatchType, content, options)
		default:
			_, err = w.mcs.MulticlusterV1beta1().ServiceExports(namespace).Patch(ctx, object.GetName(), types.ApplyPatchType, content, options)
		}
		return err
	})
}

// retry calls until it went well: whatever was written must be known.
func (w *writer) retry(ctx context.Context, call func() error) {
	err := eventually(ctx, "write to "+w.Name(), patience, func(context.Context) error {
		err := call()
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	})
	if err != nil && ctx.Err() == nil {
		w.journal.wrong("the soak itself: %v", err)
	}
}

func (s service) serviceObject() *corev1.Service {
	object := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: s.name, Namespace: namespace},
		Spec:       corev1.ServiceSpec{SessionAffinity: corev1.ServiceAffinity(s.affinity)},
	}
	if s.headless {
		object.Spec.ClusterIP = corev1.ClusterIPNone
	}
	for _, port := range s.ports {
		object.Spec.Ports = append(object.Spec.Ports, corev1.ServicePort{
			Name: port.Name, Protocol: corev1.Protocol(port.Protocol), Port: port.Number, TargetPort: intstr.FromInt32(port.Number),
		})
	}
	return object
}

func (s service) sliceObject() *discoveryv1.EndpointSlice {
	object := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Name: s.name + "-soak", Namespace: namespace,
			Labels: map[string]string{discoveryv1.LabelServiceName: s.name},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   []discoveryv1.Endpoint{},
	}
	for _, port := range s.ports {
		object.Ports = append(object.Ports, discoveryv1.EndpointPort{
			Name: ptr.To(port.Name), Protocol: ptr.To(corev1.Protocol(port.Protocol)), Port: ptr.To(port.Number),
		})
	}
	for _, endpoint := range s.endpoints {
		object.Endpoints = append(object.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{endpoint.Address.String()}, Hostname: ptr.To(endpoint.Host),
			Conditions: discoveryv1.EndpointConditions{
				Ready: ptr.To(endpoint.Ready), Serving: ptr.To(endpoint.Serving), Terminating: ptr.To(endpoint.Terminating),
			},
		})
	}
	return object
}

func (s service) exportObject() *v1beta1.ServiceExport {
	return &v1beta1.ServiceExport{
		ObjectMeta: metav1.ObjectMeta{Name: s.name, Namespace: namespace},
		Spec:       v1beta1.ServiceExportSpec{ExportedLabels: s.labels, ExportedAnnotations: s.annotations},
	}
}

// equal tells whether two services are the same.
func (s service) equal(other service) bool { return reflect.DeepEqual(s, other) }
