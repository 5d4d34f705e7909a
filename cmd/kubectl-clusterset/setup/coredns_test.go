// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	miekg "github.com/miekg/dns"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
)

const zone = "clusterset.local."

// kubeadm is the Corefile that kubeadm installs.
func kubeadm(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../../test/quickstart/testdata/coredns.yaml")
	must(t, err)
	found := regexp.MustCompile(`(?s)\n  Corefile: \|\n(.*?)\n---`).FindStringSubmatch(string(text))
	if found == nil {
		t.Fatal("no Corefile")
	}
	return strings.ReplaceAll("\n"+found[1], "\n    ", "\n")[1:] + "\n"
}

// install is a cluster with the CoreDNS of kubeadm, and that of the chart. A tenant has a Service with the same name.
func install(corefile string) *fake.Clientset {
	labels := map[string]string{"k8s-app": "kube-dns"}
	chart := func(namespace, address string) *corev1.Service {
		return &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: chartName},
			Spec:       corev1.ServiceSpec{ClusterIPs: []string{address}, Selector: map[string]string{"app": "chart"}},
		}
	}
	return fake.NewClientset(
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system"}},
		&appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: CoreDNSNamespace, Name: CoreDNSName},
			Spec:       appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}},
		},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: CoreDNSNamespace, Name: CoreDNSName}, Data: map[string]string{CorefileKey: corefile}},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: chartName},
			Subjects:   []rbacv1.Subject{{Namespace: "dns", Name: "coredns"}, {Namespace: "dns", Name: chartName}},
		},
		chart("apps", "10.96.0.66"), chart("dns", "10.96.0.99"),
	)
}

// answering is a DNS server that has the zone while serves returns true.
func answering(t *testing.T, serves func() bool) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	server := &miekg.Server{Listener: listener, Handler: miekg.HandlerFunc(func(w miekg.ResponseWriter, question *miekg.Msg) {
		reply := new(miekg.Msg).SetReply(question)
		if serves() {
			reply.Answer = []miekg.RR{&miekg.SOA{
				Hdr: miekg.RR_Header{Name: zone, Rrtype: miekg.TypeSOA, Class: miekg.ClassINET}, Ns: "ns.", Mbox: "mbox.",
			}}
		} else {
			reply.Rcode = miekg.RcodeNameError
		}
		_ = w.WriteMsg(reply)
	})}
	ended := make(chan error, 1)
	go func() { ended <- server.ActivateAndServe() }()
	t.Cleanup(func() { _, _ = listener.Close(), <-ended })
	return listener.Addr().String()
}

func corefileOf(t testing.TB, client *fake.Clientset) string {
	t.Helper()
	configMap, err := client.CoreV1().ConfigMaps(CoreDNSNamespace).Get(t.Context(), CoreDNSName, metav1.GetOptions{})
	must(t, err)
	return configMap.Data[CorefileKey]
}

// options have two pods of CoreDNS, the second of which rereads the Corefile if reloads is true, and one of the chart.
func options(t *testing.T, client *fake.Clientset, chart, reloads bool) CoreDNS {
	t.Helper()
	reloaded := func() bool { return strings.Contains(corefileOf(t, client), "forward . 10.96.0.99") }
	first, second := answering(t, reloaded), answering(t, func() bool { return reloads && reloaded() })
	ours, timeout := answering(t, func() bool { return chart }), time.Minute
	if !chart || !reloads {
		timeout = 200 * time.Millisecond // soon over
	}
	return CoreDNS{
		Cluster: &cluster.Cluster{Context: "east", Namespace: "clusterset-dns", Kube: client}, Zone: zone,
		Teller: cluster.Teller{Out: io.Discard, Results: io.Discard, Timeout: timeout},
		pods: func(_ context.Context, namespace, selector string, _ int) ([]*cluster.DNSServer, error) {
			switch {
			case namespace == "dns" && selector == "app=chart":
				return []*cluster.DNSServer{cluster.DNSAt(ours)}, nil
			case namespace == CoreDNSNamespace && selector == "k8s-app=kube-dns":
				return []*cluster.DNSServer{cluster.DNSAt(first), cluster.DNSAt(second)}, nil
			}
			return nil, errors.New("no such pods")
		},
	}
}

// TestDisableRevertsEnable on a cluster. Each changes nothing the second time.
func TestDisableRevertsEnable(t *testing.T) {
	before := kubeadm(t)
	client := install(before)
	o := options(t, client, true, true)
	var said bytes.Buffer
	o.Teller.Results = &said
	want, err := with(before, zone, []string{"10.96.0.99"})
	err = errors.Join(err, o.Enable(t.Context()), o.Enable(t.Context()))
	if got := corefileOf(t, client); err != nil || got != want || strings.Count(said.String(), "all pods of CoreDNS answer") != 2 {
		t.Fatalf("enabled, %v, %s\n%s\nwant\n%s", err, said.String(), got, want)
	}
	err = errors.Join(o.Disable(t.Context()), o.Disable(t.Context()))
	if got := corefileOf(t, client); err != nil || got != before {
		t.Errorf("got back, %v\n%s\nwant\n%s", err, got, before)
	}
}

// TestEnableChangesNothing if it cannot be sure that the zone resolves afterwards.
func TestEnableChangesNothing(t *testing.T) {
	const plain = ". {\n  errors\n  reload\n}\n"
	older, err := with(plain, zone, []string{"10.96.0.98"})
	must(t, err)
	failing := func(err error) func(*fake.Clientset) error { // once
		return func(client *fake.Clientset) error {
			client.PrependReactor("update", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
				defer func() { err = nil }()
				return err != nil, nil, err
			})
			return nil
		}
	}
	for name, test := range map[string]struct {
		corefile               string
		chart, reloads, dryRun bool
		change                 func(*fake.Clientset) error
		want                   string
	}{
		"a pod does not reload": {older, true, false, false, nil, "the Corefile is as it was before"},
		"the chart's CoreDNS does not answer": {
			plain, false, true, false, nil, "the CoreDNS of the chart must answer for clusterset.local first",
		},
		"an imported file has the zone": {
			plain + "# forward . 10.96.0.99 is in such a file\n", true, true, false, nil, "CoreDNS already answers for clusterset.local",
		},
		"a dry run":                      {plain, true, true, true, nil, ""},
		"a Corefile that does not parse": {". {\n  import\n", true, true, false, nil, "does not parse"},
		"something else owns it": {plain, true, true, false, func(client *fake.Clientset) error {
			deployment, err := client.AppsV1().Deployments(CoreDNSNamespace).Get(t.Context(), CoreDNSName, metav1.GetOptions{})
			if err == nil {
				deployment.Labels = map[string]string{"eks.amazonaws.com/component": "coredns"}
				_, err = client.AppsV1().Deployments(CoreDNSNamespace).Update(t.Context(), deployment, metav1.UpdateOptions{})
			}
			return err
		}, "Amazon EKS manages the CoreDNS of this cluster"},
		"no chart": {plain, true, true, false, func(client *fake.Clientset) error {
			return client.RbacV1().ClusterRoleBindings().Delete(t.Context(), chartName, metav1.DeleteOptions{})
		}, "--set coredns.enabled=true"},
		"another DNS server": {plain, true, true, false, func(client *fake.Clientset) error {
			return client.AppsV1().Deployments(CoreDNSNamespace).Delete(t.Context(), CoreDNSName, metav1.DeleteOptions{})
		}, "this cluster has no CoreDNS as kubeadm installs it"},
		"another writer is faster": {
			older, true, true, false, failing(apierrors.NewConflict(corev1.Resource("configmaps"), CoreDNSName, errors.New("changed"))), "changed",
		},
		"a write that fails": {older, true, true, false, failing(errors.New("no connection")), "no connection; the Corefile is as it was before"},
	} {
		t.Run(name, func(t *testing.T) {
			client := install(test.corefile)
			if test.change != nil {
				must(t, test.change(client))
			}
			client.PrependReactor("update", "configmaps", func(action clienttesting.Action) (bool, runtime.Object, error) {
				update := action.(clienttesting.UpdateActionImpl)
				return len(update.UpdateOptions.DryRun) > 0, update.Object, nil // which the fake does not know
			})
			o := options(t, client, test.chart, test.reloads)
			o.DryRun = test.dryRun
			err := o.Enable(t.Context())
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
			if got := corefileOf(t, client); got != test.corefile {
				t.Errorf("it left\n%s", got)
			}
		})
	}
}
