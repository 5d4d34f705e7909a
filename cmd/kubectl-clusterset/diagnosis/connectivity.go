// SPDX-License-Identifier: Apache-2.0

package diagnosis

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilrand "k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/utils/ptr"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/setup"
	"github.com/clusterset-dns/clusterset-dns/controller/state"
)

const (
	// settleTimeout is how long connections may fail once all names resolve: kube-proxy is slower.
	settleTimeout = 15 * time.Second
	// lifetime bounds the life of pods that are not deleted.
	lifetime = 15 * time.Minute
	// writeTimeout bounds a write after an interrupt.
	writeTimeout = 30 * time.Second
)

// A ConnectivityReport has a path from each cluster to each.
type ConnectivityReport []ConnectivityPath

// A ConnectivityPath is from the pod of a context to the pod of another one, or to itself, by a clusterset IP.
type ConnectivityPath struct {
	From string `json:"from"`
	To   string `json:"to"`
	// Name is the name that the pod resolves.
	Name string `json:"name"`
	state.ProbeResult
}

// fixes say what to do after a failure.
var fixes = map[state.ProbeStep]string{
	state.ProbeUnresolved: "Run `kubectl clusterset check` for both clusters: it finds the controller or the DNS server that lacks the name.",
	state.ProbeTimeout: "Route the pod ranges of both clusters to each other, and allow TCP between them in firewalls, security groups " +
		"and NetworkPolicies.",
	state.ProbeLargeLost: "The MTU of the path is too small: lower the MTU of the CNI in both clusters, or allow ICMP " +
		"\"fragmentation needed\" (ICMPv6 \"packet too big\").",
	state.ProbeFailed: "Run `kubectl clusterset check` for both clusters: pod ranges may overlap, routes may be missing, or a firewall or " +
		"NetworkPolicy rejects TCP connections.",
}

// Count is how many paths have a result.
func (r ConnectivityReport) Count(step state.ProbeStep) (n int) {
	for _, p := range r {
		if p.Step == step {
			n++
		}
	}
	return n
}

// Text writes a table of clusters, and what to do about each path that fails.
func (r ConnectivityReport) Text(out io.Writer) {
	var rows [][]any
	for _, p := range r {
		rows = append(rows, []any{p.From, p.To, p.Step})
	}
	Table(out, "", "FROM TO RESULT", rows)
	for _, p := range r {
		if p.Step != state.ProbeOK {
			fmt.Fprintf(out, "\n✗  %s → %s: %s: %s (%s)\n   > %s\n", p.From, p.To, p.Name, p.Step, p.Error, fixes[p.Step])
		}
	}
	fmt.Fprintf(out, "\n%d of %d connections are ok\n", r.Count(state.ProbeOK), len(r))
}

// A site is a cluster with its pod, which owns the other objects of the test.
type site struct {
	*cluster.Cluster
	// name is the name of the pod, of its Service and of the ServiceExport.
	name string
}

// Connect tests whether a pod of each of two or more clusters reaches a pod of each cluster by the name of a clusterset IP in
// the zone. It always deletes the objects that it created. The report may have failures; an error means that the test could not
// run, or that objects could not be deleted.
func Connect(ctx context.Context, clusters []*cluster.Cluster, zone string, teller cluster.Teller) (report ConnectivityReport, err error) {
	if err := cluster.Identify(ctx, clusters); err != nil {
		return nil, err
	}
	sites, targets, report := plan(clusters, zone)
	teller.Say("Starting a pod in each of %d clusters, in namespace %s", len(sites), sites[0].Namespace)
	defer func() {
		err = errors.Join(err, cluster.Each(clusters, func(i int, _ *cluster.Cluster) error { return sites[i].delete(ctx) }))
	}()
	err = cluster.Each(clusters, func(i int, _ *cluster.Cluster) error { return sites[i].create(ctx, targets) })
	if err != nil {
		return nil, err
	}
	resolved := time.Now() // when a name was last unresolved
	err = teller.Wait(ctx, func(ctx context.Context) (waiting string, err error) {
		for i, s := range sites {
			pending, err := s.read(ctx, report[i*len(targets):(i+1)*len(targets)])
			if err != nil {
				return "", err
			}
			waiting = cmp.Or(waiting, pending)
		}
		for _, p := range report {
			if p.Step != state.ProbeOK {
				waiting = cmp.Or(waiting, fmt.Sprintf("%s → %s: %s: %s", p.From, p.To, p.Name, cmp.Or(p.Step, "not tried")))
			}
		}
		switch {
		case report.Count("")+report.Count(state.ProbeUnresolved) > 0:
			resolved = time.Now()
		case time.Since(resolved) > settleTimeout:
			return "", nil
		}
		return waiting, nil
	})
	if err != nil && (!errors.Is(err, cluster.ErrTimeout) || report.Count("") > 0) {
		return nil, err
	}
	return report, nil // after a timeout, it has the failures
}

// plan returns the sites and the targets of each pod, the name of the Service of each cluster. The report has no results yet.
func plan(clusters []*cluster.Cluster, zone string) (sites []*site, targets []string, report ConnectivityReport) {
	run := utilrand.String(5) // objects of a killed test do not disturb other tests
	for i, c := range clusters {
		s := &site{Cluster: c, name: fmt.Sprintf("clusterset-probe-%s-%d", run, i)}
		sites, targets = append(sites, s), append(targets, nameOf(s.Namespace, s.name, zone)+"="+s.ID)
	}
	for _, from := range sites {
		for _, to := range sites {
			report = append(report, ConnectivityPath{From: from.Context, To: to.Context, Name: nameOf(to.Namespace, to.name, zone)})
		}
	}
	return sites, targets, report
}

// create creates the pod, its Service and the ServiceExport.
func (s *site) create(ctx context.Context, targets []string) error {
	deployment, err := s.Kube.AppsV1().Deployments(s.Namespace).Get(ctx, setup.ControllerName, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("the image of the controller: %w", err)
	}
	pod := s.podOf(&deployment.Spec.Template.Spec, targets)
	made, err := s.Kube.CoreV1().Pods(s.Namespace).Create(ctx, pod, metav1.CreateOptions{FieldManager: cluster.FieldManager})
	if err != nil {
		return fmt.Errorf("create a pod in namespace %s: %w", s.Namespace, err)
	}
	owners := []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: made.Name, UID: made.UID}}
	of := metav1.ObjectMeta{Namespace: s.Namespace, Name: s.name, Labels: pod.Labels, OwnerReferences: owners}
	_, err = s.Kube.CoreV1().Services(s.Namespace).Create(ctx, &corev1.Service{
		ObjectMeta: of,
		Spec: corev1.ServiceSpec{
			Selector: pod.Labels, IPFamilyPolicy: ptr.To(corev1.IPFamilyPolicyPreferDualStack),
			Ports: []corev1.ServicePort{{Name: "tcp", Port: state.ProbePort}},
		},
	}, metav1.CreateOptions{FieldManager: cluster.FieldManager})
	if err == nil {
		err = s.CreateServiceExport(ctx, of, nil)
	}
	if err != nil {
		return fmt.Errorf("create and export Service %s/%s: %w", s.Namespace, s.name, err)
	}
	return nil
}

// podOf returns a pod that tries the targets, and runs as a pod of the controller does.
func (s *site) podOf(spec *corev1.PodSpec, targets []string) *corev1.Pod {
	container := corev1.Container{
		Name: "probe", Args: append([]string{"probe", s.ID}, targets...), Command: spec.Containers[0].Command,
		Image: spec.Containers[0].Image, ImagePullPolicy: spec.Containers[0].ImagePullPolicy,
		SecurityContext: spec.Containers[0].SecurityContext, Resources: spec.Containers[0].Resources,
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: s.name, Labels: map[string]string{
			"app.kubernetes.io/name": "clusterset-dns", "app.kubernetes.io/component": "probe",
			"app.kubernetes.io/managed-by": cluster.FieldManager, "app.kubernetes.io/instance": s.name,
		}},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{container}, RestartPolicy: corev1.RestartPolicyNever,
			ActiveDeadlineSeconds: ptr.To(int64(lifetime.Seconds())), TerminationGracePeriodSeconds: ptr.To[int64](1),
			AutomountServiceAccountToken: ptr.To(false), EnableServiceLinks: ptr.To(false),
			NodeSelector: spec.NodeSelector, Tolerations: spec.Tolerations,
			ImagePullSecrets: spec.ImagePullSecrets, SecurityContext: spec.SecurityContext,
		},
	}
}

// delete deletes the pod, and with it what it owns, even if ctx has ended.
func (s *site) delete(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
	defer cancel()
	err := s.Kube.CoreV1().Pods(s.Namespace).Delete(ctx, s.name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("a pod is not deleted: %w: kubectl --context %s -n %s delete pod %s", err, s.Context, s.Namespace, s.name)
	}
	return nil
}

// read puts the newest results of the pod into its paths. pending says what a pod that does not run waits for.
func (s *site) read(ctx context.Context, paths []ConnectivityPath) (pending string, err error) {
	pods := s.Kube.CoreV1().Pods(s.Namespace)
	pod, err := pods.Get(ctx, s.name, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("context %s: %w", s.Context, err)
	}
	switch pod.Status.Phase {
	case corev1.PodRunning:
	case corev1.PodFailed, corev1.PodSucceeded:
		return "", fmt.Errorf("context %s: pod %s exited: %s: the controller must have the version of this command",
			s.Context, s.name, why(pod))
	default:
		return fmt.Sprintf("pod %s in %s does not run (%s)", s.name, s.Context, why(pod)), nil
	}
	log, err := pods.GetLogs(s.name, &corev1.PodLogOptions{}).DoRaw(ctx)
	if err != nil {
		return fmt.Sprintf("the log of pod %s in %s cannot be read (%v)", s.name, s.Context, err), nil
	}
	for text := range bytes.Lines(log) {
		var line state.ProbeLine
		if json.Unmarshal(text, &line) == nil && line.Index >= 0 && line.Index < len(paths) {
			state.Clean(&line.ProbeResult) // another program may have answered
			paths[line.Index].ProbeResult = line.ProbeResult
		}
	}
	return "", nil
}

// why says what a pod waits for, or why it ended.
func why(pod *corev1.Pod) string {
	for _, status := range pod.Status.ContainerStatuses {
		if waiting := status.State.Waiting; waiting != nil {
			return waiting.Reason + ": " + waiting.Message
		}
		if ended := status.State.Terminated; ended != nil {
			return strings.TrimSpace(ended.Reason + " " + ended.Message)
		}
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Status != corev1.ConditionTrue && condition.Message != "" {
			return condition.Message
		}
	}
	return pod.Status.Message
}
