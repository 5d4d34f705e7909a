// SPDX-License-Identifier: Apache-2.0

package nodecache

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/clusterset-dns/clusterset-dns/cmd/clusterset-controller/probe"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/progress"
)

const system = "clusterset-dns"

var ready = corev1.PodStatus{
	Phase: corev1.PodRunning, PodIPs: []corev1.PodIP{{IP: "10.1.0.1"}},
	Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
}

// installed is a cluster with a cache on node one, and a controller. Pods that are created become ready at once.
func installed(corefile string, args ...string) *fake.Clientset {
	labels := map[string]string{"k8s-app": "node-local-dns"}
	meta := metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "node-local-dns", Labels: labels}
	set := &appsv1.DaemonSet{ObjectMeta: meta, Spec: appsv1.DaemonSetSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}}}
	set.Spec.Template.Spec = corev1.PodSpec{
		Containers: []corev1.Container{{Name: "node-cache", Args: args}},
		Volumes: []corev1.Volume{{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: meta.Name},
		}}}},
	}
	controller := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: "clusterset-controller"}}
	controller.Spec.Template.Spec.Containers = []corev1.Container{{Name: "controller", Image: "example.org/clusterset-controller:1"}}
	starting := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: meta.Namespace, Name: "a", Labels: labels}, Spec: corev1.PodSpec{NodeName: "zero"},
	}
	running := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: meta.Namespace, Name: "b", Labels: labels}, Spec: corev1.PodSpec{NodeName: "one"}, Status: ready,
	}
	client := fake.NewClientset(set, controller, starting, running,
		&corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{"Corefile": corefile}})
	client.PrependReactor("create", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		pod := action.(clienttesting.CreateAction).GetObject().(*corev1.Pod)
		pod.Name, pod.UID, pod.Status = pod.GenerateName+"x", "uid", ready
		return false, nil, nil
	})
	return client
}

// A caller plays the pod, and the servers that it asks.
type caller struct {
	answer func(server string, query *dns.Msg) (*dns.Msg, error)
	asked  []string
}

func (c *caller) Close() {}

// errBlocked is the error of an answer that never comes.
var errBlocked = errors.New("blocked")

func (c *caller) Send(ctx context.Context, request probe.Request) (reply probe.Reply, err error) {
	for _, query := range request.Queries {
		c.asked = append(c.asked, query.Server)
		question := new(dns.Msg)
		if err := question.Unpack(query.Message); err != nil {
			return reply, err
		}
		answered, err := c.answer(query.Server, question)
		switch {
		case errors.Is(err, context.DeadlineExceeded):
			reply.Answers = append(reply.Answers, probe.Answer{Failure: probe.Timeout, Error: "i/o timeout"})
			continue
		case errors.Is(err, errBlocked):
			<-ctx.Done()
			return reply, ctx.Err()
		case err != nil:
			return reply, err
		}
		packed, err := answered.Pack()
		if err != nil {
			return reply, err
		}
		reply.Answers = append(reply.Answers, probe.Answer{Message: packed})
	}
	return reply, nil
}

func serves(_ string, query *dns.Msg) (*dns.Msg, error) {
	record, err := dns.NewRR(query.Question[0].Name + " 5 IN SOA ns.dns. hostmaster. 1 2 3 4 5")
	reply := new(dns.Msg).SetReply(query)
	reply.Answer = []dns.RR{record}
	return reply, err
}

func hides(_ string, query *dns.Msg) (*dns.Msg, error) {
	return new(dns.Msg).SetRcode(query, dns.RcodeNameError), nil
}

func ask(ctx context.Context, t *testing.T, client *fake.Clientset, c *caller, wait bool) ([]Answer, error) {
	t.Helper()
	answers, err := Ask(ctx, Options{
		Cluster: &cluster.Cluster{Context: "east", Namespace: system, Kube: client}, Zone: "clusterset.local", Wait: wait,
		Teller: progress.Teller{Out: io.Discard, Results: io.Discard, Timeout: time.Second, Interval: time.Millisecond},
		open:   func(context.Context, string) (connection, []string, error) { return c, []string{"10.96.0.10"}, nil },
	})
	pods, listed := client.CoreV1().Pods(system).List(context.WithoutCancel(ctx), metav1.ListOptions{})
	if listed != nil || len(pods.Items) > 0 {
		t.Errorf("pods remain: %v, %v", pods.Items, listed)
	}
	return answers, err
}

const block = "cluster.local:53 {\n bind %s\n forward . 10.96.0.2\n}\n.:53 {\n forward . /etc/resolv.conf\n}\n"

// TestAddresses: the cache is asked where the pods of its node reach it.
func TestAddresses(t *testing.T) {
	localip := []string{"-localip", "169.254.20.10,10.96.0.10", "-conf", "/etc/Corefile"}
	for name, test := range map[string]struct {
		bind string
		args []string
		want []string
	}{
		"of the Corefile":       {"169.254.20.10 10.96.0.10", nil, []string{"169.254.20.10", "10.96.0.10"}},
		"IPv6":                  {"fd00::10", nil, []string{"fd00::10"}},
		"a variable":            {"__PILLAR__LOCAL__DNS__", localip, []string{"169.254.20.10", "10.96.0.10"}},
		"a variable, and equal": {"__PILLAR__LOCAL__DNS__", []string{"--localip=169.254.20.10"}, []string{"169.254.20.10"}},
		// Cilium redirects the address of the cluster's DNS.
		"all addresses": {"0.0.0.0", localip, []string{"10.96.0.10"}},
	} {
		c := &caller{answer: serves}
		answers, err := ask(t.Context(), t, installed(strings.ReplaceAll(block, "%s", test.bind), test.args...), c, false)
		if err != nil || !slices.Equal(c.asked, test.want) || len(answers) != len(test.want) {
			t.Errorf("%s: asked %v, got %+v, %v", name, c.asked, answers, err)
		}
		for _, answer := range answers {
			if !answer.Serves() || answer.Node != "one" || answer.Cache != "node-local-dns" {
				t.Errorf("%s: got %+v", name, answer)
			}
		}
	}
}

var corefile = strings.ReplaceAll(block, "%s", "169.254.20.10")

// TestWaiting: a cache rereads its Corefile late, or never.
func TestWaiting(t *testing.T) {
	c := &caller{}
	c.answer = func(server string, query *dns.Msg) (*dns.Msg, error) {
		switch len(c.asked) {
		case 1:
			return hides(server, query)
		case 2:
			return nil, context.DeadlineExceeded
		}
		return serves(server, query)
	}
	answers, err := ask(t.Context(), t, installed(corefile), c, true)
	if err != nil || len(answers) != 1 || !answers[0].Serves() || len(c.asked) != 3 {
		t.Errorf("asked %d times: got %+v, %v", len(c.asked), answers, err)
	}
	answers, err = ask(t.Context(), t, installed(corefile), &caller{answer: hides}, true)
	if err != nil || len(answers) != 1 || answers[0].Serves() || answers[0].Text() != "NXDOMAIN" {
		t.Errorf("got %+v, %v", answers, err)
	}
	// The time ends within a query.
	rounds := 0
	answers, err = ask(t.Context(), t, installed(corefile), &caller{answer: func(server string, query *dns.Msg) (*dns.Msg, error) {
		if rounds++; rounds == 1 {
			return hides(server, query)
		}
		return nil, errBlocked
	}}, true)
	if err != nil || len(answers) != 1 || answers[0].Text() != "NXDOMAIN" {
		t.Errorf("got %+v, %v", answers, err)
	}
	answers, err = ask(t.Context(), t, installed(corefile), &caller{
		answer: func(string, *dns.Msg) (*dns.Msg, error) { return nil, context.DeadlineExceeded },
	}, false)
	if err != nil || len(answers) != 1 || answers[0].Serves() || !strings.Contains(answers[0].Text(), "i/o timeout") {
		t.Errorf("got %+v, %v", answers, err)
	}
}

// TestNothingIsLeft: whatever fails, the pod is deleted.
func TestNothingIsLeft(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for _, test := range []struct {
		want      string
		answer    func(string, *dns.Msg) (*dns.Msg, error)
		interfere func(*fake.Clientset)
	}{
		{"context canceled", func(string, *dns.Msg) (*dns.Msg, error) { cancel(); return nil, context.Canceled }, nil},
		{"the image of the controller is too old to ask", func(string, *dns.Msg) (*dns.Msg, error) {
			return nil, errors.New(`400 Bad Request: json: unknown field "queries"`)
		}, nil},
		{"exited: unknown command", serves, func(client *fake.Clientset) {
			client.PrependReactor("create", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
				pod := action.(clienttesting.CreateAction).GetObject().(*corev1.Pod)
				pod.Namespace, pod.Name, pod.Status = system, "exits", corev1.PodStatus{Phase: corev1.PodFailed, Message: "unknown command"}
				pod.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{
					Terminated: &corev1.ContainerStateTerminated{Message: "unknown command"},
				}}}
				return true, pod, client.Tracker().Add(pod)
			})
		}},
		{"quota", serves, func(client *fake.Clientset) {
			client.PrependReactor("create", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
				return true, nil, errors.New("quota")
			})
		}},
	} {
		client := installed(corefile)
		if test.interfere != nil {
			test.interfere(client)
		}
		used := ctx
		if test.want != "context canceled" {
			used = t.Context()
		}
		if _, err := ask(used, t, client, &caller{answer: test.answer}, true); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("got %v, want %q", err, test.want)
		}
	}
}

// TestPodRunsOnTheNode, whatever its taints.
func TestPodRunsOnTheNode(t *testing.T) {
	pod := podOf(corev1.PodSpec{
		NodeSelector: map[string]string{"pool": "system"}, Containers: []corev1.Container{{}},
	}, "one")
	term := pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0]
	if field := term.MatchFields[0]; field.Key != "metadata.name" || !slices.Equal(field.Values, []string{"one"}) {
		t.Errorf("got %+v", field)
	}
	if len(pod.Spec.NodeSelector) > 0 || pod.Spec.Tolerations[0].Operator != corev1.TolerationOpExists ||
		pod.Spec.HostNetwork || pod.Spec.DNSPolicy != "" || *pod.Spec.AutomountServiceAccountToken {
		t.Errorf("got %+v", pod.Spec)
	}
}
