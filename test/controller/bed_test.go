// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
	mcs "sigs.k8s.io/mcs-api/pkg/client/clientset/versioned"

	"github.com/clusterset-dns/clusterset-dns/controller"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane"
)

const (
	system         = "clusterset-dns"
	controllerName = "clusterset-controller"
	memberName     = "clusterset-member"
	// patience bounds each wait for a state. Nothing waits that long on
	// purpose.
	patience = 2 * time.Minute
)

// A cluster is a control plane and what a test does with it.
type cluster struct {
	*controlplane.Cluster
	kubernetes.Interface
	mcs mcs.Interface
	// written are the writes of its controllers.
	written *writes
	// mapper finds resources; it is Reset where it does not know a kind.
	mapper *restmapper.DeferredDiscoveryRESTMapper
	// options are what its controllers are made from; a test may change them
	// before it starts one.
	options controller.Options
}

// bed returns a pair of clusters with the rights installed and without members.
func bed(t testing.TB) (east, west *cluster) {
	t.Helper()
	first, second := pair(t)
	return newCluster(t, first), newCluster(t, second)
}

// Name is the id of the cluster in the set.
func (c *cluster) Name() string { return cmp.Or(c.options.Cluster, c.Cluster.Name()) }

// mappers find the resources of those control planes that have the rights.
var mappers sync.Map

func newCluster(t testing.TB, plane *controlplane.Cluster) *cluster {
	t.Helper()
	mapper, known := mappers.LoadOrStore(plane, restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(plane.Client().Discovery())))
	mcsClient, err := mcs.NewForConfig(plane.Config())
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster{
		Cluster: plane, Interface: plane.Client(), mcs: mcsClient, written: newWrites(),
		mapper: mapper.(*restmapper.DeferredDiscoveryRESTMapper), //nolint:forcetypeassert // nothing else is stored
	}
	if !known {
		rbac, err := os.ReadFile("../../deploy/rbac.yaml")
		must(t, err)
		c.create(t, "", string(rbac)+c.nodes())
	}
	c.options = controller.Options{
		Config:   c.configOf(t, system, controllerName),
		Cluster:  plane.Name(),
		Registry: prometheus.NewRegistry(),
	}
	c.options.Config.Wrap(c.written.wrap)
	t.Cleanup(func() {
		ctx, all := context.Background(), metav1.DeleteOptions{}
		// The Leases tell which cluster had which id. It may have another in the next test.
		if err := errors.Join(
			c.CoreV1().Secrets(system).DeleteCollection(ctx, all, metav1.ListOptions{LabelSelector: member.ClusterLabel}),
			c.CoordinationV1().Leases(system).DeleteCollection(ctx, all, metav1.ListOptions{}),
		); err != nil {
			t.Error(err)
		}
	})
	return c
}

// nodes are two nodes in two zones. Nobody plays them: no test here has pods.
func (c *cluster) nodes() string {
	text := ""
	for i, zone := range "ab" {
		text += fmt.Sprintf("\n---\napiVersion: v1\nkind: Node\nmetadata: {name: %[1]s-%[2]d, labels: {topology.kubernetes.io/zone: %[1]s-%[3]c}}", c.Cluster.Name(), i, zone)
	}
	return text
}

// configOf is a client configuration with the rights of a service account.
func (c *cluster) configOf(t testing.TB, namespace, name string) *rest.Config {
	t.Helper()
	config, err := clientcmd.RESTConfigFromKubeConfig(c.kubeconfigOf(t, namespace, name))
	if err != nil {
		t.Fatal(err)
	}
	return config
}

func (c *cluster) kubeconfigOf(t testing.TB, namespace, name string) []byte {
	t.Helper()
	kubeconfig, err := c.ServiceAccountKubeconfig(t.Context(), namespace, name)
	if err != nil {
		t.Fatal(err)
	}
	return kubeconfig
}

// start runs a controller until the test ends or the returned function is
// called. A controller that ends with an error fails the test.
func (c *cluster) start(t testing.TB) (stop func()) {
	t.Helper()
	// Each controller has a registry of its own.
	c.options.Registry = prometheus.NewRegistry()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	options := c.options
	go func() { done <- controller.Run(ctx, options) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("the controller of %s ended with: %v", c.Name(), err)
			}
		case <-time.After(patience):
			t.Errorf("the controller of %s did not stop", c.Name())
		}
	}
	t.Cleanup(stop)
	return stop
}

// join makes other a member of c by a Secret.
func (c *cluster) join(t testing.TB, other *cluster) {
	t.Helper()
	c.putSecret(t, "member-"+other.Name(), other.Name(), other.kubeconfigOf(t, system, memberName))
}

func (c *cluster) putSecret(t testing.TB, name, id string, kubeconfig []byte) *corev1.Secret {
	t.Helper()
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{member.ClusterLabel: id}},
		Data:       map[string][]byte{member.KubeconfigKey: kubeconfig},
	}
	secrets := c.CoreV1().Secrets(system)
	created, err := secrets.Create(t.Context(), secret, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		created, err = secrets.Update(t.Context(), secret, metav1.UpdateOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
	return created
}

func (c *cluster) leave(t testing.TB, other *cluster) {
	t.Helper()
	if err := c.CoreV1().Secrets(system).Delete(t.Context(), "member-"+other.Name(), metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

// joined starts a controller in each cluster and makes each a member of the
// other.
func joined(t testing.TB, east, west *cluster) {
	t.Helper()
	east.join(t, west)
	west.join(t, east)
	east.start(t)
	west.start(t)
}

// namespace makes a namespace for the test in each of the clusters and returns
// its name.
func namespace(t testing.TB, clusters ...*cluster) string {
	t.Helper()
	name := fmt.Sprintf("test-%x", time.Now().UnixNano())
	for _, c := range clusters {
		c.createNamespace(t, name)
	}
	return name
}

func (c *cluster) createNamespace(t testing.TB, name string) {
	t.Helper()
	_, err := c.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		err := c.CoreV1().Namespaces().Delete(context.Background(), name, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			t.Error(err)
		}
	})
}

// create makes the objects of a YAML stream, in the namespace where they name
// none, and replaces those that exist.
func (c *cluster) create(t testing.TB, namespace, text string) {
	t.Helper()
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewBufferString(text), 4096)
	for {
		object := &unstructured.Unstructured{}
		if err := decoder.Decode(&object.Object); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
		if object.Object == nil {
			continue
		}
		kind := object.GroupVersionKind()
		mapping, err := c.mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if meta.IsNoMatchError(err) {
			c.mapper.Reset()
			mapping, err = c.mapper.RESTMapping(kind.GroupKind(), kind.Version)
		}
		if err != nil {
			t.Fatal(err)
		}
		var client dynamic.ResourceInterface = c.Dynamic().Resource(mapping.Resource)
		if mapping.Scope.Name() == "namespace" {
			if object.GetNamespace() == "" {
				object.SetNamespace(namespace)
			}
			client = c.Dynamic().Resource(mapping.Resource).Namespace(object.GetNamespace())
		}
		if _, err := client.Apply(t.Context(), object.GetName(), object, metav1.ApplyOptions{FieldManager: "test", Force: true}); err != nil {
			t.Fatalf("%s %s: %v", kind.Kind, object.GetName(), err)
		}
	}
}

// eventually waits until check is nil. It looks often at first, and less often
// the longer it takes.
func eventually(t testing.TB, what string, check func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	pause := 10 * time.Millisecond
	var last error // what was wrong, not that time ran out while it was asked for
	for {
		err := check(ctx)
		if err == nil {
			return
		}
		if ctx.Err() == nil || last == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s: not within %s: %v", what, patience, last)
		case <-time.After(pause):
			pause = min(pause*5/4, 250*time.Millisecond)
		}
	}
}
