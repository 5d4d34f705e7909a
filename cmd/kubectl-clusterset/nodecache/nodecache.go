// SPDX-License-Identifier: Apache-2.0

// Package nodecache asks NodeLocal DNSCache as the pods of a node do: from a pod
// on that node, which it creates in the namespace of the controller and deletes.
package nodecache

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterset-dns/clusterset-dns/cmd/clusterset-controller/probe"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/coredns"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/dns"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/probepod"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/progress"
)

const (
	// component labels the pods.
	component = "dns-probe"
	// prefix begins their names.
	prefix = "clusterset-probe-dns-"
	// cleanupTimeout bounds the deletion of a pod.
	cleanupTimeout = 30 * time.Second
)

// Options say what to ask.
type Options struct {
	Cluster *cluster.Cluster
	Zone    string
	// Wait asks again until the cache serves the zone, or the timeout of Teller: it
	// rereads its Corefile with a delay.
	Wait   bool
	Teller progress.Teller

	// open connects to a pod; nil means probepod.Open.
	open func(ctx context.Context, pod string) (connection, []string, error)
}

// A connection sends requests to a pod.
type connection interface {
	Send(ctx context.Context, asked probe.Request) (probe.Reply, error)
	Close()
}

// connect opens a connection to a pod. It returns the nameservers of the pod, too.
func (o Options) connect(ctx context.Context, pod string) (connection, []string, error) {
	if o.open != nil {
		return o.open(ctx, pod)
	}
	opened, err := probepod.Open(ctx, o.Teller, o.Cluster, pod)
	if err != nil {
		return nil, nil, err
	}
	return opened, opened.Nameservers, nil
}

// An Answer is that of a cache for the zone itself.
type Answer struct {
	// Cache is its DaemonSet, Node where it runs, Server the address that was asked.
	Cache, Node, Server string
	dns.Answer
	// Error is why there is no answer, empty if there is one.
	Error string
}

// Serves reports whether the cache serves the zone.
func (a Answer) Serves() bool {
	return a.Error == "" && a.Rcode == "NOERROR" && len(a.Records) > 0
}

// Text is the answer, or why there is none.
func (a Answer) Text() string {
	if a.Error != "" {
		return a.Error
	}
	return a.Answer.Text()
}

// Ask asks one cache of each DaemonSet of NodeLocal DNSCache, at each of its
// addresses. Caches that answer something else are no error, and neither is a
// timeout with answers. The pod is deleted even if ctx is canceled.
func Ask(ctx context.Context, o Options) (answers []Answer, err error) {
	caches, err := coredns.Caches(ctx, o.Cluster)
	if err != nil {
		return nil, fmt.Errorf("looking for NodeLocal DNSCache: %w", err)
	}
	for _, cache := range caches {
		found, err := o.ask(ctx, cache)
		if err != nil {
			return nil, err
		}
		answers = append(answers, found...)
	}
	return answers, nil
}

func (o Options) ask(ctx context.Context, cache coredns.Cache) (answers []Answer, err error) {
	node, err := o.node(ctx, cache)
	if err != nil {
		return nil, err
	}
	template, err := probepod.Template(ctx, o.Cluster, "")
	if err != nil {
		return nil, err
	}
	pods := o.Cluster.Kube.CoreV1().Pods(o.Cluster.Namespace)
	pod, err := probepod.Whole(ctx, func(ctx context.Context) (*corev1.Pod, error) {
		return pods.Create(ctx, podOf(template, node), metav1.CreateOptions{FieldManager: cluster.FieldManager})
	})
	if err != nil {
		return nil, fmt.Errorf("create a pod in namespace %s: %w", o.Cluster.Namespace, err)
	}
	o.Teller.Say("Asking NodeLocal DNSCache on node %s in pod %s/%s, which is then deleted", node, o.Cluster.Namespace, pod.Name)
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
		defer cancel()
		if gone := pods.Delete(ctx, pod.Name, probepod.Exactly(pod)); gone != nil && !apierrors.IsNotFound(gone) {
			err = errors.Join(err, fmt.Errorf("a pod is not deleted: %w: kubectl --context %s -n %s delete pod %s", gone,
				o.Cluster.Context, o.Cluster.Namespace, pod.Name))
		}
	}()
	if err := o.await(ctx, pod.Name); err != nil {
		return nil, err
	}
	opened, nameservers, err := o.connect(ctx, pod.Name)
	if err != nil {
		return nil, err
	}
	defer opened.Close()
	servers := cache.Addresses()
	if len(servers) == 0 {
		servers = nameservers
	}
	if len(servers) == 0 {
		return nil, fmt.Errorf("pod %s has no nameserver", pod.Name)
	}
	err = o.Teller.Wait(ctx, func(ctx context.Context) (string, error) {
		now := make([]Answer, 0, len(servers))
		for _, server := range servers {
			answer := Answer{Cache: cache.DaemonSet.Name, Node: node, Server: server}
			if err := answer.ask(ctx, opened, o.Zone); err != nil {
				return "", err
			}
			now = append(now, answer)
		}
		answers = now // the last whole round is the result
		at := slices.IndexFunc(answers, func(a Answer) bool { return !a.Serves() })
		if at < 0 || !o.Wait {
			return "", nil
		}
		return fmt.Sprintf("the cache of node %s still returns %s for %s", node, answers[at].Text(), o.Zone), nil
	})
	if errors.Is(err, progress.ErrTimeout) && len(answers) == len(servers) {
		err = nil
	}
	return answers, err
}

// ask asks a server for the zone itself. The error is that of the pod.
func (a *Answer) ask(ctx context.Context, from connection, zone string) error {
	var broken error
	server := dns.Through(a.Server, func(ctx context.Context, query []byte) ([]byte, error) {
		reply, err := from.Send(ctx, probe.Request{Queries: []probe.Query{{Server: a.Server, Message: query}}})
		if err != nil {
			broken = err
			return nil, err
		}
		if answer := reply.Answers[0]; answer.Failure != "" {
			return nil, errors.New(answer.Error)
		}
		return reply.Answers[0].Message, nil
	})
	answer, err := server.Ask(ctx, zone, "SOA")
	switch {
	case broken != nil && strings.Contains(broken.Error(), "unknown field"):
		return errors.New("the image of the controller is too old to ask: upgrade clusterset-dns")
	case broken != nil:
		return broken
	case err != nil:
		a.Error = err.Error()
	}
	a.Answer = answer
	return nil
}

// node is one where a cache is ready.
func (o Options) node(ctx context.Context, cache coredns.Cache) (string, error) {
	selector, err := metav1.LabelSelectorAsSelector(cache.DaemonSet.Spec.Selector)
	if err != nil {
		return "", err
	}
	pods, err := o.Cluster.Kube.CoreV1().Pods(coredns.Namespace).List(ctx, metav1.ListOptions{LabelSelector: selector.String()})
	if err != nil {
		return "", fmt.Errorf("the pods of NodeLocal DNSCache: %w", err)
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		if pending, err := probepod.Pending(pod); err == nil && pending == "" && pod.DeletionTimestamp == nil {
			return pod.Spec.NodeName, nil
		}
	}
	return "", fmt.Errorf("no pod of DaemonSet %s/%s is ready", coredns.Namespace, cache.DaemonSet.Name)
}

// podOf is a pod that runs on a node, as those of a DaemonSet do.
func podOf(template corev1.PodSpec, node string) *corev1.Pod {
	pod := probepod.New(template, probepod.Labels(component), component)
	pod.GenerateName = prefix
	pod.Spec.NodeSelector = nil
	pod.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchFields: []corev1.NodeSelectorRequirement{{
				Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{node},
			}},
		}}},
	}}
	return pod
}

// await waits until a pod is ready.
func (o Options) await(ctx context.Context, name string) error {
	return o.Teller.Wait(ctx, func(ctx context.Context) (string, error) {
		pod, err := o.Cluster.Kube.CoreV1().Pods(o.Cluster.Namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return "", err
		}
		pending, err := probepod.Pending(pod)
		if pending != "" {
			pending = fmt.Sprintf("pod %s is not ready (%s)", name, pending)
		}
		return pending, err
	})
}
