// SPDX-License-Identifier: Apache-2.0

package local

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/utils/lru"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

// Pods reads the ports of single pods, which never change. All methods may be called concurrently.
type Pods struct {
	client typedcorev1.PodsGetter
	known  *lru.Cache // by UID
}

// NewPods returns Pods with a cache for the ports of 10,000 pods.
func NewPods(client typedcorev1.PodsGetter) *Pods {
	return &Pods{client: client, known: lru.New(10_000)}
}

// Known returns the ports of the containers of a pod, which must not be changed, or an error if they are not known: it wraps
// export.ErrPodsForbidden if the right to read pods was missing.
func (p *Pods) Known(of corev1.ObjectReference) ([]corev1.ContainerPort, error) {
	known, _ := p.known.Get(of.UID)
	if ports, ok := known.([]corev1.ContainerPort); ok {
		return ports, nil
	}
	err, _ := known.(error)
	return nil, fmt.Errorf("pod %s cannot be read: %w", of.Name, cmp.Or(err, errors.New("it was not read yet")))
}

// Read returns a function like Known, but it reads unknown pods until the context ends or a request is forbidden.
func (p *Pods) Read(ctx context.Context) func(corev1.ObjectReference) ([]corev1.ContainerPort, error) {
	var forbidden error
	return func(of corev1.ObjectReference) ([]corev1.ContainerPort, error) {
		if ports, err := p.Known(of); err == nil {
			return ports, nil
		}
		pod, err := &corev1.Pod{}, forbidden
		if err == nil {
			pod, err = p.client.Pods(of.Namespace).Get(ctx, of.Name, metav1.GetOptions{})
		}
		switch {
		case apierrors.IsForbidden(err):
			forbidden = err
			p.known.Add(of.UID, export.ErrPodsForbidden)
		case err != nil:
			p.known.Add(of.UID, err)
		case pod.UID != of.UID:
			p.known.Add(of.UID, errors.New("it was replaced"))
		default:
			ports := []corev1.ContainerPort{}
			for _, container := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) { // sidecars are among the first
				ports = append(ports, container.Ports...)
			}
			p.known.Add(of.UID, ports)
		}
		return p.Known(of)
	}
}
