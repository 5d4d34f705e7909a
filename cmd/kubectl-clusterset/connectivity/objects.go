// SPDX-License-Identifier: Apache-2.0

package connectivity

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/clusterset-dns/clusterset-dns/cmd/clusterset-controller/probe"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/probepod"
	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/locality"
)

const (
	// Name begins the names of all objects. That of the headless Service and of its
	// ServiceExport is Name itself.
	Name = "clusterset-probe"
	// nameWithIP is that of the Service with a cluster IP.
	nameWithIP = Name + "-ip"
	// podsOfCluster are on different nodes if there are several.
	podsOfCluster = 2
	// cleanupTimeout bounds the deletion in a cluster.
	cleanupTimeout = time.Minute
)

var labels = probepod.Labels("probe")

// podOf is one of the pods of a cluster.
func podOf(template corev1.PodSpec, number int, id string) *corev1.Pod {
	name := fmt.Sprintf("%s-%d", Name, number)
	pod := probepod.New(template, labels, Pod{Cluster: id, Name: name}.identity())
	pod.Name, pod.Spec.Hostname, pod.Spec.Subdomain = name, name, Name
	pod.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
		PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{
			Weight: 100, PodAffinityTerm: corev1.PodAffinityTerm{
				LabelSelector: &metav1.LabelSelector{MatchLabels: labels}, TopologyKey: corev1.LabelHostname,
			},
		}},
	}}
	return pod
}

// serviceOf is a Service of the pods, headless or with an IP.
func serviceOf(name string) *corev1.Service {
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Spec: corev1.ServiceSpec{
			Selector: labels, IPFamilyPolicy: ptr.To(corev1.IPFamilyPolicyPreferDualStack),
			Ports: []corev1.ServicePort{
				{Name: "tcp", Protocol: corev1.ProtocolTCP, Port: probe.Port, TargetPort: intstr.FromString("tcp")},
				{Name: "udp", Protocol: corev1.ProtocolUDP, Port: probe.Port, TargetPort: intstr.FromString("udp")},
			},
		},
	}
	if name == Name {
		service.Spec.ClusterIP = corev1.ClusterIPNone
	}
	return service
}

// exportOf exports a Service to clients that use no cluster first, whatever the
// operator prefers.
func exportOf(version, namespace, name string) *unstructured.Unstructured {
	object := cluster.NewServiceExport(version, namespace, name)
	object.SetLabels(labels)
	// Cannot fail: there is no spec yet.
	_ = unstructured.SetNestedStringMap(object.Object, map[string]string{export.AnnotationPrefer: locality.PreferNone},
		"spec", "exportedAnnotations")
	return object
}

// A site is a cluster with what was created in it.
type site struct {
	*cluster.Cluster
	id   string
	spec corev1.PodSpec
	// remove deletes what was created, the newest first.
	remove []func(context.Context) error
}

// create makes the Services and pods. It stops at the first error.
func (s *site) create(ctx context.Context) error {
	options := metav1.CreateOptions{FieldManager: cluster.FieldManager}
	for _, name := range []string{Name, nameWithIP} {
		services := s.Kube.CoreV1().Services(s.Namespace)
		made, err := probepod.Whole(ctx, func(ctx context.Context) (*corev1.Service, error) {
			return services.Create(ctx, serviceOf(name), options)
		})
		if err != nil {
			return s.refused("Service "+name, err)
		}
		s.remove = append(s.remove, func(ctx context.Context) error { return services.Delete(ctx, name, probepod.Exactly(made)) })
	}
	for i := range podsOfCluster {
		pods := s.Kube.CoreV1().Pods(s.Namespace)
		made, err := probepod.Whole(ctx, func(ctx context.Context) (*corev1.Pod, error) {
			return pods.Create(ctx, podOf(s.spec, i, s.id), options)
		})
		if err != nil {
			return s.refused(fmt.Sprintf("pod %s-%d", Name, i), err)
		}
		s.remove = append(s.remove, func(ctx context.Context) error { return pods.Delete(ctx, made.Name, probepod.Exactly(made)) })
	}
	return nil
}

// export makes the ServiceExports.
func (s *site) export(ctx context.Context) error {
	version, err := s.MCSVersion(ctx)
	if err != nil {
		return err
	}
	for _, name := range []string{Name, nameWithIP} {
		_, err := probepod.Whole(ctx, func(ctx context.Context) (any, error) {
			return nil, s.CreateExport(ctx, exportOf(version, s.Namespace, name))
		})
		if err != nil {
			return s.refused("ServiceExport "+name, err)
		}
		s.remove = append(s.remove, func(ctx context.Context) error {
			return s.DeleteServiceExport(ctx, s.Namespace, name, nil)
		})
	}
	return nil
}

// refused is the error of an object that cannot be created.
func (s *site) refused(what string, err error) error {
	if apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("context %s: %s exists: another test is running, or was killed: %s", s.Context, what, s.sweep())
	}
	return fmt.Errorf("context %s: create %s: %w", s.Context, what, err)
}

// sweep is the command that deletes all that a test creates.
func (s *site) sweep() string {
	return fmt.Sprintf("kubectl --context %s -n %s delete serviceexports,services,pods -l "+
		"app.kubernetes.io/component=probe", s.Context, s.Namespace)
}

// cleanup deletes what was created, even if ctx has ended, and waits until the
// pods are gone.
func (s *site) cleanup(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	var wrong []error
	for i := len(s.remove) - 1; i >= 0; i-- {
		if err := s.remove[i](ctx); err != nil && !apierrors.IsNotFound(err) {
			wrong = append(wrong, err)
		}
	}
	ticker := time.NewTicker(200 * time.Millisecond)
	defer ticker.Stop()
	for len(wrong) == 0 && len(s.remove) > 0 {
		pods, err := s.Kube.CoreV1().Pods(s.Namespace).List(ctx, metav1.ListOptions{LabelSelector: selector()})
		if err != nil {
			wrong = append(wrong, err)
		} else if len(pods.Items) == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			wrong = append(wrong, errors.New("pods still exist"))
		case <-ticker.C:
		}
	}
	if len(wrong) > 0 {
		return fmt.Errorf("context %s: not all objects are deleted: %w: %s", s.Context, errors.Join(wrong...), s.sweep())
	}
	return nil
}

func selector() string {
	var all []string
	for key, value := range labels {
		all = append(all, key+"="+value)
	}
	return strings.Join(all, ",")
}
