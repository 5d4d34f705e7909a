// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	mcsclient "sigs.k8s.io/mcs-api/pkg/client/clientset/versioned"
)

const protocolTCP = corev1.ProtocolTCP

// parallel is how many requests are under way at a time.
const parallel = 48

// Writer writes to one API server.
type Writer struct {
	kube kubernetes.Interface
	mcs  mcsclient.Interface
}

// NewWriter uses the configuration without a limit to the rate of requests.
func NewWriter(config *rest.Config) (*Writer, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1
	protobuf := rest.CopyConfig(config)
	protobuf.ContentType = "application/vnd.kubernetes.protobuf"
	protobuf.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	kube, err := kubernetes.NewForConfig(protobuf)
	if err != nil {
		return nil, fmt.Errorf("make a client of %s: %w", config.Host, err)
	}
	mcs, err := mcsclient.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client of %s: %w", config.Host, err)
	}
	return &Writer{kube: kube, mcs: mcs}, nil
}

// Namespace makes a namespace where there is none of that name.
func (w *Writer) Namespace(ctx context.Context, name string) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := w.kube.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil &&
		!apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create namespace %s: %w", name, err)
	}
	return nil
}

// Create writes the objects from the given numbers of imports and slices on, and the namespace where it does not exist.
// It returns once all are written.
func (w *Writer) Create(ctx context.Context, set *Set, imports, slices int) error {
	if err := w.Namespace(ctx, set.Namespace); err != nil {
		return err
	}
	err := each(ctx, set.Imports[imports:], func(ctx context.Context, i int) error {
		object := set.Imports[imports+i]
		_, err := w.mcs.MulticlusterV1beta1().ServiceImports(set.Namespace).Create(ctx, object, metav1.CreateOptions{})
		return err
	})
	if err != nil {
		return fmt.Errorf("create ServiceImports in %s: %w", set.Namespace, err)
	}
	err = each(ctx, set.Slices[slices:], func(ctx context.Context, i int) error {
		object := set.Slices[slices+i]
		_, err := w.kube.DiscoveryV1().EndpointSlices(set.Namespace).Create(ctx, object, metav1.CreateOptions{})
		return err
	})
	if err != nil {
		return fmt.Errorf("create EndpointSlices in %s: %w", set.Namespace, err)
	}
	return nil
}

// each calls do for every item, many at a time, until one fails.
func each[T any](ctx context.Context, items []T, do func(context.Context, int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	next := make(chan int)
	group.Go(func() error {
		defer close(next)
		for i := range items {
			select {
			case next <- i:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return nil
	})
	for range min(parallel, len(items)) {
		group.Go(func() error {
			for i := range next {
				if err := do(ctx, i); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait()
}

// Move gives the first endpoint of the slice an address and writes the slice, with the time of the change, as
// Kubernetes' own controller does.
func (w *Writer) Move(ctx context.Context, slice *discoveryv1.EndpointSlice, address string) error {
	slice.Endpoints[0].Addresses = []string{address}
	metav1.SetMetaDataAnnotation(&slice.ObjectMeta, corev1.EndpointsLastChangeTriggerTime,
		time.Now().UTC().Format(time.RFC3339Nano))
	_, err := w.kube.DiscoveryV1().EndpointSlices(slice.Namespace).Update(ctx, slice, metav1.UpdateOptions{})
	if err != nil {
		return fmt.Errorf("update EndpointSlice %s/%s: %w", slice.Namespace, slice.Name, err)
	}
	return nil
}
