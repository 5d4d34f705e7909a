// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/coredns/caddy"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clocktesting "k8s.io/utils/clock/testing"
	mcs "sigs.k8s.io/mcs-api/pkg/client/clientset/versioned"

	"github.com/clusterset-dns/clusterset-dns/controller"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane"
)

const (
	system = "clusterset-dns"
	// patience bounds each wait for a state. Nothing waits that long on
	// purpose.
	patience = 2 * time.Minute
)

// A cluster is a control plane, its controller and its clock.
type cluster struct {
	*controlplane.Cluster
	kubernetes.Interface
	mcs     mcs.Interface
	clock   *clocktesting.FakeClock
	options controller.Options
	stop    func() // nil where its controller does not run
}

// A bed is three clusters in which the services of newServices are exported.
type bed struct {
	testing.TB
	east, west, north *cluster
	// ways are those from east to its members.
	ways map[*cluster]*controlplane.Remote
	// namespace holds the services.
	namespace string
	dns       *caddy.Instance
}

// newBed joins the clusters and waits until east sees them and answers.
func newBed(t *testing.T) *bed {
	t.Helper()
	planes := shared(t)
	b := &bed{TB: t, namespace: fmt.Sprintf("fault-%x", time.Now().UnixNano()), ways: map[*cluster]*controlplane.Remote{}}
	b.east, b.west, b.north = b.cluster(planes[0]), b.cluster(planes[1]), b.cluster(planes[2])
	b.exportServices()
	for _, c := range b.all() {
		for _, other := range b.all() {
			if other != c {
				b.join(c, other)
			}
		}
	}
	for _, c := range b.all() {
		b.start(c)
	}
	b.serve()
	b.beat(b.pairs()...)
	b.expect(healthy)
	return b
}

func (b *bed) all() []*cluster { return []*cluster{b.east, b.west, b.north} }

func (b *bed) cluster(plane *controlplane.Cluster) *cluster {
	b.Helper()
	mcsClient, err := mcs.NewForConfig(plane.Config())
	b.must(err)
	c := &cluster{Cluster: plane, Interface: plane.Client(), mcs: mcsClient}
	// The clocks are far apart, which must make no difference.
	c.clock = clocktesting.NewFakeClock(time.Now().Add(time.Duration(len(plane.Name())-4) * 10 * time.Minute))
	rights, err := os.ReadFile("../../deploy/rbac.yaml")
	b.must(err)
	b.apply(c, "", string(rights))
	ofMembers := metav1.ListOptions{LabelSelector: member.ClusterLabel}
	b.must(c.CoreV1().Secrets(system).DeleteCollection(b.Context(), metav1.DeleteOptions{}, ofMembers))
	b.must(c.CoordinationV1().Leases(system).DeleteCollection(b.Context(), metav1.DeleteOptions{}, ofMembers))
	config, err := clientcmd.RESTConfigFromKubeConfig(b.kubeconfig(plane.ServiceAccountKubeconfig(b.Context(), system, "clusterset-controller")))
	b.must(err)
	c.options = controller.Options{Config: config, Cluster: plane.Name(), Clock: c.clock}
	return c
}

func (b *bed) kubeconfig(text []byte, err error) []byte {
	b.Helper()
	b.must(err)
	return text
}

// join makes other a member of c. East reads its members over ways that can be
// cut.
func (b *bed) join(c, other *cluster) {
	b.Helper()
	account := other.ServiceAccountKubeconfig
	if c == b.east {
		way, err := other.Remote(c.Name())
		b.must(err)
		b.Cleanup(way.Reconnect)
		b.ways[other] = way
		account = way.ServiceAccountKubeconfig
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "member-" + other.Name(), Labels: map[string]string{member.ClusterLabel: other.Name()}},
		Data:       map[string][]byte{member.KubeconfigKey: b.kubeconfig(account(b.Context(), system, "clusterset-member"))},
	}
	_, err := c.CoreV1().Secrets(system).Create(b.Context(), secret, metav1.CreateOptions{})
	b.must(err)
}

// annotate sets an annotation on the Secret of a member of east, or removes it
// where the value is empty.
func (b *bed) annotate(of *cluster, key, value string) {
	b.Helper()
	b.eventually("annotate the Secret", func(ctx context.Context) error {
		secret, err := b.east.CoreV1().Secrets(system).Get(ctx, "member-"+of.Name(), metav1.GetOptions{})
		if err != nil {
			return err
		}
		delete(secret.Annotations, key)
		if value != "" {
			metav1.SetMetaDataAnnotation(&secret.ObjectMeta, key, value)
		}
		_, err = b.east.CoreV1().Secrets(system).Update(ctx, secret, metav1.UpdateOptions{})
		return err
	})
}

// start runs the controller of a cluster until the test ends or stop is called.
func (b *bed) start(c *cluster) {
	b.Helper()
	c.options.Registry = prometheus.NewRegistry()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	options := c.options
	go func() { done <- controller.Run(ctx, options) }()
	c.stop = func() {
		c.stop = nil
		cancel()
		select {
		case err := <-done:
			if err != nil {
				b.Errorf("the controller of %s ended with: %v", c.Name(), err)
			}
		case <-time.After(patience):
			b.Errorf("the controller of %s did not stop", c.Name())
		}
	}
	b.Cleanup(func() {
		if c.stop != nil {
			c.stop()
		}
	})
}

// serve answers queries in east.
func (b *bed) serve() {
	b.Helper()
	path := filepath.Join(b.TempDir(), "kubeconfig")
	b.must(os.WriteFile(path, b.kubeconfig(b.east.Kubeconfig()), 0o600))
	corefile := fmt.Sprintf("clusterset.local:0 {\n bind 127.0.0.1\n multicluster {\n kubeconfig %s\n }\n}\n", path)
	instance, err := caddy.Start(caddy.CaddyfileInput{Filepath: "Corefile", Contents: []byte(corefile), ServerTypeName: "dns"})
	b.must(err)
	b.dns = instance
	b.Cleanup(func() {
		for _, err := range instance.ShutdownCallbacks() {
			b.Error(err)
		}
		b.must(instance.Stop())
	})
}

// must fails the test on an error.
func (b *bed) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// eventually waits until check is nil.
func (b *bed) eventually(what string, check func(context.Context) error) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), patience)
	defer cancel()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for {
		err := check(ctx)
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			b.Fatalf("%s: not within %s: %v", what, patience, err)
		case <-ticker.C:
		}
	}
}

func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
