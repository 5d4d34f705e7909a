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
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/clusterset-dns/clusterset-dns/cmd/clusterset-controller/probe"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/join"
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
	// lifetime ends pods that nobody deletes.
	lifetime = 15 * time.Minute
	// cleanupTimeout bounds the deletion in a cluster.
	cleanupTimeout = time.Minute
)

var labels = map[string]string{
	"app.kubernetes.io/name": "clusterset-dns", "app.kubernetes.io/component": "probe",
	"app.kubernetes.io/managed-by": cluster.FieldManager,
}

// template has what pods of a cluster need to run: that of the controller's
// Deployment, with another image if that is not empty.
func template(ctx context.Context, c *cluster.Cluster, image string) (corev1.PodSpec, error) {
	container := corev1.Container{SecurityContext: &corev1.SecurityContext{
		AllowPrivilegeEscalation: ptr.To(false), ReadOnlyRootFilesystem: ptr.To(true),
		Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}}
	spec := corev1.PodSpec{SecurityContext: &corev1.PodSecurityContext{
		RunAsNonRoot:   ptr.To(true),
		SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}}
	deployment, err := c.Kube.AppsV1().Deployments(c.Namespace).Get(ctx, join.ControllerName, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err) && image != "":
	case err != nil:
		return spec, fmt.Errorf("context %s: the image of the controller: %w: set the image with --image", c.Context, err)
	default:
		its := deployment.Spec.Template.Spec
		spec.NodeSelector, spec.Tolerations = its.NodeSelector, its.Tolerations
		spec.ImagePullSecrets, spec.SecurityContext = its.ImagePullSecrets, its.SecurityContext
		first := its.Containers[0]
		container.Image, container.ImagePullPolicy = first.Image, first.ImagePullPolicy
		container.Command, container.SecurityContext = first.Command, first.SecurityContext
	}
	if image != "" {
		container.Image = image
	}
	spec.Containers = []corev1.Container{container}
	return spec, nil
}

// podOf is one of the pods of a cluster.
func podOf(spec corev1.PodSpec, number int, id string) *corev1.Pod {
	name := fmt.Sprintf("%s-%d", Name, number)
	spec = *spec.DeepCopy()
	spec.Hostname, spec.Subdomain = name, Name
	spec.RestartPolicy = corev1.RestartPolicyNever
	spec.ActiveDeadlineSeconds = ptr.To(int64(lifetime.Seconds()))
	spec.TerminationGracePeriodSeconds = ptr.To[int64](1)
	spec.AutomountServiceAccountToken, spec.EnableServiceLinks = ptr.To(false), ptr.To(false)
	spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
		PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{
			Weight: 100, PodAffinityTerm: corev1.PodAffinityTerm{
				LabelSelector: &metav1.LabelSelector{MatchLabels: labels}, TopologyKey: corev1.LabelHostname,
			},
		}},
	}}
	container := &spec.Containers[0]
	container.Name = "probe"
	container.Args = []string{"probe", "--identity=" + Pod{Cluster: id, Name: name}.identity()}
	container.Ports = []corev1.ContainerPort{
		{Name: "tcp", Protocol: corev1.ProtocolTCP, ContainerPort: probe.Port},
		{Name: "udp", Protocol: corev1.ProtocolUDP, ContainerPort: probe.Port},
	}
	container.Resources = corev1.ResourceRequirements{
		Requests: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("32Mi"),
		},
		Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi")},
	}
	container.ReadinessProbe = &corev1.Probe{
		ProbeHandler:  corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(probe.Port)}},
		PeriodSeconds: 1,
	}
	container.TerminationMessagePolicy = corev1.TerminationMessageFallbackToLogsOnError
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}, Spec: spec}
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
		made, err := services.Create(ctx, serviceOf(name), options)
		if err != nil {
			return s.refused("Service "+name, err)
		}
		s.remove = append(s.remove, func(ctx context.Context) error { return services.Delete(ctx, name, exactly(made)) })
	}
	for i := range podsOfCluster {
		pods := s.Kube.CoreV1().Pods(s.Namespace)
		made, err := pods.Create(ctx, podOf(s.spec, i, s.id), options)
		if err != nil {
			return s.refused(fmt.Sprintf("pod %s-%d", Name, i), err)
		}
		s.remove = append(s.remove, func(ctx context.Context) error { return pods.Delete(ctx, made.Name, exactly(made)) })
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
		if err := s.CreateExport(ctx, exportOf(version, s.Namespace, name)); err != nil {
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

// exactly deletes no other object of the name.
func exactly(object metav1.Object) metav1.DeleteOptions {
	return metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: ptr.To(object.GetUID())}}
}

func selector() string {
	var all []string
	for key, value := range labels {
		all = append(all, key+"="+value)
	}
	return strings.Join(all, ",")
}
