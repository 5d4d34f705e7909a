// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/coredns/caddy"
	"github.com/miekg/dns"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
	clocktesting "k8s.io/utils/clock/testing"
	mcs "sigs.k8s.io/mcs-api/pkg/client/clientset/versioned"

	"github.com/clusterset-dns/clusterset-dns/controller"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane"
)

const (
	system = "clusterset-dns"
	// rights is the file with the rights of the controllers and the members.
	rights = "../../deploy/rbac.yaml"
	// patience bounds each wait for a state. Nothing waits that long on
	// purpose.
	patience = 2 * time.Minute
)

// A cluster is a control plane, its controller, its CoreDNS and its clock.
type cluster struct {
	*controlplane.Cluster
	kubernetes.Interface
	mcs     mcs.Interface
	mapper  meta.RESTMapper
	clock   *clocktesting.FakeClock
	options controller.Options
	dns     *resolver
	stop    func() // nil where its controller does not run
	// away is set while its API server does not answer: then all that can be
	// seen of it is what its CoreDNS answers.
	away bool
	// ips are those of the imports, by service.
	ips map[string]string
	// hears is when it heard the others last, as far as that was looked at.
	hears map[*cluster]heard
}

// A bed is three clusters, each a member of the others, in which the services
// of exported are exported.
type bed struct {
	testing.TB
	t                 *testing.T
	east, west, north *cluster
	// ways are those by which one cluster reads another. They can be cut.
	ways map[pair]*controlplane.Remote
	// namespace holds the services.
	namespace string
	// services are what the clusters export at first.
	services map[string]string
	// allowed are the answers that may be given at any time.
	allowed *allowed
}

// newBed joins the clusters. No controller runs yet.
func newBed(t *testing.T) *bed {
	t.Helper()
	planes := shared(t)
	b := &bed{
		TB: t, t: t,
		ways:      map[pair]*controlplane.Remote{},
		namespace: fmt.Sprintf("fault-%x", time.Now().UnixNano()),
		services:  exported,
		allowed:   newAllowed(),
	}
	b.east, b.west, b.north = b.cluster(planes[0]), b.cluster(planes[1]), b.cluster(planes[2])
	for _, c := range b.all() {
		b.createNamespace(c)
		b.Cleanup(func() { b.clean(c) })
		b.serve(c)
	}
	for _, p := range b.everyPair() {
		way, err := p.writer.Remote(p.reader.Name())
		b.must(err)
		b.ways[p] = way
	}
	return b
}

// clean removes what the test left. A namespace takes seconds to go, and what is
// in it would be something that the next test's clusters lose.
func (b *bed) clean(c *cluster) {
	ctx, all := context.Background(), metav1.ListOptions{}
	b.must(c.mcs.MulticlusterV1beta1().ServiceExports(b.namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, all))
	b.must(c.mcs.MulticlusterV1beta1().ServiceImports(b.namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, all))
	b.must(c.DiscoveryV1().EndpointSlices(b.namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, all))
	b.must(ignoreNotFound(c.CoreV1().Namespaces().Delete(ctx, b.namespace, metav1.DeleteOptions{})))
}

// fault is a test of its own with controllers of its own. It begins with all as
// it should be, and what is answered is watched until it ends.
func (b *bed) fault(name string, run func(*bed)) {
	b.sub(name, func(b *bed) {
		b.reset()
		for _, c := range b.all() {
			b.start(c)
		}
		b.beat(b.pairs()...)
		b.expect(healthy)
		b.watchAnswers(healthy.services()...)
		run(b)
	})
}

// sub is a part of the test with a name of its own.
func (b *bed) sub(name string, run func(*bed)) {
	b.t.Run(name, func(t *testing.T) {
		part := *b
		part.TB, part.t = t, t
		run(&part)
	})
}

// reset makes of the clusters what they were at first.
func (b *bed) reset() {
	b.Helper()
	b.allowed.reset()
	for _, way := range b.ways {
		way.Reconnect()
	}
	for i, c := range b.all() {
		c.away, c.ips = false, map[string]string{}
		// They are far apart, which must make no difference.
		c.setClock(time.Now().Add(time.Duration(i-1) * 10 * time.Minute))
		c.options = controller.Options{Config: c.options.Config, Cluster: c.Name(), Clock: c.clock}
		ofMembers := metav1.ListOptions{LabelSelector: member.ClusterLabel}
		b.must(c.CoreV1().Secrets(system).DeleteCollection(b.Context(), metav1.DeleteOptions{}, ofMembers))
		b.must(c.CoordinationV1().Leases(system).DeleteCollection(b.Context(), metav1.DeleteOptions{}, ofMembers))
		b.must(ignoreNotFound(c.CoordinationV1().Leases(system).Delete(b.Context(), member.HeartbeatLease, metav1.DeleteOptions{})))
		b.exportServices(c)
	}
	for _, p := range b.everyPair() {
		b.join(p)
	}
}

func (b *bed) all() []*cluster { return []*cluster{b.east, b.west, b.north} }

func (c *cluster) setClock(now time.Time) {
	c.clock = clocktesting.NewFakeClock(now)
	c.options.Clock = c.clock
}

func (b *bed) cluster(plane *controlplane.Cluster) *cluster {
	b.Helper()
	mcsClient, err := mcs.NewForConfig(plane.Config())
	b.must(err)
	c := &cluster{Cluster: plane, Interface: plane.Client(), mcs: mcsClient, hears: map[*cluster]heard{}}
	c.mapper = restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(c.Discovery()))
	if !granted[plane] {
		b.grant(c)
		granted[plane] = true
	}
	kubeconfig, err := plane.ServiceAccountKubeconfig(b.Context(), system, "clusterset-controller")
	b.must(err)
	c.options.Config, err = clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	b.must(err)
	return c
}

// granted are the clusters in which the rights are; a test that takes them away
// gives them back.
var granted = map[*controlplane.Cluster]bool{}

// grant gives the controllers and the members their rights.
func (b *bed) grant(c *cluster) {
	b.Helper()
	text, err := os.ReadFile(rights)
	b.must(err)
	b.apply(c, "", string(text))
}

// credential is one by which the reader may read the writer, over their way.
func (b *bed) credential(p pair) []byte {
	b.Helper()
	kubeconfig, err := b.ways[p].ServiceAccountKubeconfig(b.Context(), system, "clusterset-member")
	b.must(err)
	return kubeconfig
}

// join makes the writer a member of the reader.
func (b *bed) join(p pair) {
	b.Helper()
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: p.secret(), Labels: map[string]string{member.ClusterLabel: p.writer.Name()}},
		Data:       map[string][]byte{member.KubeconfigKey: b.credential(p)},
	}
	_, err := p.reader.CoreV1().Secrets(system).Create(b.Context(), secret, metav1.CreateOptions{})
	b.must(err)
}

// edit changes the Secret by which a reader has its member.
func (b *bed) edit(p pair, change func(*corev1.Secret)) {
	b.Helper()
	b.eventually("edit the Secret", func(ctx context.Context) error {
		secret, err := p.reader.CoreV1().Secrets(system).Get(ctx, p.secret(), metav1.GetOptions{})
		if err != nil {
			return err
		}
		change(secret)
		_, err = p.reader.CoreV1().Secrets(system).Update(ctx, secret, metav1.UpdateOptions{})
		return err
	})
}

// replace gives the reader another kubeconfig for its member.
func (b *bed) replace(p pair, kubeconfig []byte) {
	b.Helper()
	b.edit(p, func(secret *corev1.Secret) { secret.Data = map[string][]byte{member.KubeconfigKey: kubeconfig} })
}

// annotate sets an annotation on the Secret of a member of east, or removes it
// where the value is empty.
func (b *bed) annotate(of *cluster, key, value string) {
	b.Helper()
	b.edit(pair{b.east, of}, func(secret *corev1.Secret) {
		delete(secret.Annotations, key)
		if value != "" {
			metav1.SetMetaDataAnnotation(&secret.ObjectMeta, key, value)
		}
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
	stop := func() {
		cancel()
		select {
		case err := <-done:
			if err != nil && !errors.Is(err, errKilled) {
				b.Errorf("the controller of %s ended with: %v", c.Name(), err)
			}
		case <-time.After(patience):
			b.Errorf("the controller of %s did not stop", c.Name())
		}
	}
	c.stop = func() {
		c.stop = nil
		stop()
	}
	b.Cleanup(func() {
		if c.stop != nil {
			c.stop()
		}
	})
}

// serve answers queries in a cluster.
func (b *bed) serve(c *cluster) {
	b.Helper()
	path := filepath.Join(b.TempDir(), "kubeconfig")
	b.must(c.WriteKubeconfig(path))
	corefile := fmt.Sprintf("clusterset.local:0 {\n bind 127.0.0.1\n multicluster {\n kubeconfig %s\n }\n}\n", path)
	instance, err := caddy.Start(caddy.CaddyfileInput{Filepath: "Corefile", Contents: []byte(corefile), ServerTypeName: "dns"})
	b.must(err)
	c.dns = &resolver{address: instance.Servers()[0].LocalAddr().String(), client: dns.Client{Timeout: 10 * time.Second}}
	b.Cleanup(func() {
		b.must(c.dns.close())
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

// eventually waits until check is nil. The longer that takes the less often it
// is asked, so that it costs no more than an eighth of the wait.
func (b *bed) eventually(what string, check func(context.Context) error) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), patience)
	defer cancel()
	began := time.Now()
	var last error
	for {
		err := check(ctx)
		if err == nil {
			return
		}
		if ctx.Err() == nil {
			last = err // else it tells of the end alone
		}
		select {
		case <-ctx.Done():
			b.Fatalf("%s: not within %s: %v", what, patience, last)
		case <-time.After(min(max(time.Since(began)/8, 10*time.Millisecond), 200*time.Millisecond)):
		}
	}
}
