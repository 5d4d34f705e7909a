// SPDX-License-Identifier: Apache-2.0

package skew

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterset-dns/clusterset-dns/controller/accept"
	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/controller/memberstate"
	"github.com/clusterset-dns/clusterset-dns/test/clusterset"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/controlplanetest"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/programs"
)

const (
	// before is the last commit whose controller knows only version 1 of the snapshot.
	before = "ed01c7ae17c399665c5c186fd0e234a934ea5c5e"
	// namespace is that of the services.
	namespace = "demo"
	// staleAfter is the least that the controller takes.
	staleAfter = 20 * time.Second
)

func TestMain(m *testing.M) { controlplanetest.Main(m) }

var must = controlplanetest.Must

// A version is programs, and the manifests that go with them.
type version struct {
	name, bin, manifests string
}

// build builds the programs of the checkout, and those of the version before from its history.
func build(t *testing.T) (newer, older version) {
	t.Helper()
	root, err := programs.Checkout()
	must(t, err)
	run := func(folder, name string, args ...string) (string, error) {
		command := exec.CommandContext(t.Context(), name, args...)
		command.Dir = folder
		command.Env = append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0", "GOGC=")
		output, err := command.CombinedOutput()
		return strings.TrimSpace(string(output)), err
	}
	wanted := os.Getenv("OLD")
	if wanted == "" {
		wanted = before
		if tag, err := run(root, "git", "describe", "--tags", "--abbrev=0"); err == nil {
			wanted = tag
		}
	}
	commit, err := run(root, "git", "rev-parse", "--verify", "--quiet", wanted+"^{commit}")
	if err != nil {
		t.Fatalf("the history of %s lacks %s, the version before: fetch it with `git fetch --unshallow --tags`, or name "+
			"another with `make test-skew OLD=<commit or tag>`", root, wanted)
	}
	source := t.TempDir()
	older = version{"before", filepath.Join(source, "bin"), filepath.Join(source, "deploy")}
	for _, command := range [][]string{
		{"git", "archive", "--output", filepath.Join(source, "source.tar"), commit},
		{"tar", "-xf", filepath.Join(source, "source.tar"), "-C", source},
	} {
		if output, err := run(root, command[0], command[1:]...); err != nil {
			t.Fatalf("%s: %v\n%s", strings.Join(command, " "), err, output)
		}
	}
	if output, err := run(source, "go", "build", "-trimpath", "-tags=bed", "-ldflags=-s -w -X main.version="+commit[:12],
		"-o", older.bin+"/", "./cmd/coredns", "./cmd/clusterset-controller"); err != nil {
		t.Fatalf("build the programs of %s: %v\n%s", commit, err, output)
	}
	bin, err := programs.Build(t.Context(), "cmd/coredns", "cmd/clusterset-controller")
	must(t, err)
	t.Logf("the version before is %s", commit)
	return version{"this", bin, filepath.Join(root, "deploy")}, older
}

// A cluster is a control plane with the programs of a version.
type cluster struct {
	*controlplane.Cluster
	root, t         *testing.T // of the test, and of the step
	controllerUser  clusterset.Credential
	dnsUser         clusterset.Credential
	version         version
	controller, dns *clusterset.Program
	judge           *judge
}

// grant applies the rights of a version.
func (c *cluster) grant(v version) {
	c.t.Helper()
	for _, manifest := range []string{"rbac.yaml", "coredns-rbac.yaml"} {
		text, err := os.ReadFile(filepath.Join(v.manifests, manifest))
		must(c.t, err)
		must(c.t, clusterset.Apply(c.t.Context(), c.Cluster, text))
	}
}

// run replaces the programs by those of a version.
func (c *cluster) run(v version) {
	c.t.Helper()
	c.stop()
	c.version = v
	c.start()
	started, err := clusterset.StartDNS(c.Cluster, filepath.Join(v.bin, "coredns"), c.dnsUser)
	must(c.t, err)
	controlplanetest.Eventually(c.t, "CoreDNS of "+c.Name(), func(ctx context.Context) error {
		_, err := ask(ctx, started.Address, "db")
		return err
	})
	old := c.dns
	c.judge.serve(c.Name(), started.Address)
	if c.dns = started; old != nil {
		must(c.t, old.Stop(context.WithoutCancel(c.t.Context()), 10*time.Second))
	}
	c.root.Cleanup(func() { _ = started.Stop(context.WithoutCancel(c.root.Context()), time.Second) })
}

// start starts a controller of the same version as before.
func (c *cluster) start() {
	c.t.Helper()
	started, err := clusterset.StartController(c.Cluster, filepath.Join(c.version.bin, "clusterset-controller"),
		c.controllerUser, "--stale-after", staleAfter.String())
	must(c.t, err)
	c.controller = started
	c.root.Cleanup(func() { _ = started.Stop(context.WithoutCancel(c.root.Context()), time.Second) })
	controlplanetest.Eventually(c.t, "controller of "+c.Name(), func(ctx context.Context) error {
		ready, err := started.Ready(ctx)
		if err == nil && !ready {
			err = errors.New("it is not ready")
		}
		return err
	})
}

// stop stops the controller.
func (c *cluster) stop() {
	c.t.Helper()
	if c.controller != nil {
		must(c.t, c.controller.Stop(c.t.Context(), 20*time.Second))
		c.controller = nil
	}
}

func (c *cluster) restart() {
	c.t.Helper()
	c.stop()
	c.start()
}

// put applies objects.
func (c *cluster) put(format string, args ...any) {
	c.t.Helper()
	must(c.t, clusterset.ApplyIn(c.t.Context(), c.Cluster, namespace, fmt.Appendf(nil, format, args...)))
}

// serve makes a headless Service with ready endpoints.
func (c *cluster) serve(service string, addresses ...string) {
	c.serveAs(service, "None", addresses...)
}

func (c *cluster) serveAs(service, ip string, addresses ...string) {
	c.t.Helper()
	var endpoints []string
	for _, each := range addresses {
		endpoints = append(endpoints, fmt.Sprintf("{addresses: [%q], conditions: {ready: true, serving: true}}", each))
	}
	c.put(`
apiVersion: v1
kind: Service
metadata: {name: %[1]s}
spec: {clusterIP: %[2]s, ports: [{name: http, port: 80}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: %[1]s-1, labels: {kubernetes.io/service-name: %[1]s}}
addressType: IPv4
ports: [{name: http, port: 8080, protocol: TCP}]
endpoints: [%[3]s]
`, service, ip, strings.Join(endpoints, ", "))
}

// export exports a service, with annotations of the ServiceExport and exported ones, each as a key and a value in turn.
func (c *cluster) export(service string, own, exported []string) {
	c.t.Helper()
	text := func(pairs []string) string {
		var each []string
		for i := 0; i < len(pairs); i += 2 {
			each = append(each, fmt.Sprintf("%s: %q", pairs[i], pairs[i+1]))
		}
		return strings.Join(each, ", ")
	}
	c.put(`
apiVersion: multicluster.x-k8s.io/v1beta1
kind: ServiceExport
metadata: {name: %s, annotations: {%s}}
spec: {exportedAnnotations: {%s}}
`, service, text(own), text(exported))
}

// chosen returns the annotation of an export for some clusters, none for all.
func chosen(clusters string) []string {
	if clusters == "" {
		return nil
	}
	return []string{export.AnnotationClusters, clusters}
}

// see returns the endpoints of the slices that the controller wrote for a service, sorted, each as cluster/address,
// with ~ if it is not ready.
func (c *cluster) see(ctx context.Context, service string) (string, error) {
	list, err := c.Client().DiscoveryV1().EndpointSlices(namespace).List(ctx, metav1.ListOptions{
		LabelSelector: export.LabelService + "=" + service + "," + export.LabelSliceManagedBy + "=" + export.Manager,
	})
	if err != nil {
		return "", err
	}
	var seen []string
	for i := range list.Items {
		slice := &list.Items[i]
		for _, each := range slice.Endpoints {
			mark := ""
			if each.Conditions.Ready != nil && !*each.Conditions.Ready {
				mark = "~"
			}
			seen = append(seen, slice.Labels[export.LabelSourceCluster]+"/"+each.Addresses[0]+mark)
		}
	}
	slices.Sort(seen)
	return strings.Join(seen, " "), nil
}

// expect waits until a service looks so in a cluster, and DNS answers the endpoints that are ready or, if none is, all.
func (c *cluster) expect(service, want string) {
	c.t.Helper()
	controlplanetest.Eventually(c.t, service+" in "+c.Name(), func(ctx context.Context) error {
		return c.differs(ctx, service, want)
	})
}

func (c *cluster) differs(ctx context.Context, service, want string) error {
	got, err := c.see(ctx, service)
	if err != nil {
		return err
	}
	if got != want {
		return fmt.Errorf("got %q, want %q", got, want)
	}
	answered, err := ask(ctx, c.dns.Address, service)
	if err != nil || service == "web" {
		return err
	}
	var ready, all []string
	for each := range strings.FieldsSeq(want) {
		_, address, _ := strings.Cut(each, "/")
		plain := strings.TrimSuffix(address, "~")
		if all = append(all, plain); plain == address {
			ready = append(ready, plain)
		}
	}
	if len(ready) == 0 {
		ready = all
	}
	slices.Sort(ready)
	if !slices.Equal(answered, ready) {
		return fmt.Errorf("DNS answers %v, want %v", answered, ready)
	}
	return nil
}

// holds asserts that a service stays as it is.
func (c *cluster) holds(long time.Duration, service, want string) {
	c.t.Helper()
	c.expect(service, want)
	for end := time.Now().Add(long); time.Now().Before(end); <-time.After(200 * time.Millisecond) {
		if err := c.differs(c.t.Context(), service, want); err != nil {
			c.t.Fatalf("%s in %s: %v", service, c.Name(), err)
		}
	}
}

// knows waits until the Lease of a member in this cluster has a state, and an annotation with a value, empty for none.
func (c *cluster) knows(of *cluster, state, key, value string) {
	c.t.Helper()
	controlplanetest.Eventually(c.t, "Lease of "+of.Name()+" in "+c.Name(), func(ctx context.Context) error {
		lease, err := c.Client().CoordinationV1().Leases(clusterset.Namespace).Get(ctx,
			memberstate.LeasePrefix+of.Name(), metav1.GetOptions{})
		if err != nil {
			return err
		}
		if lease.Annotations[memberstate.StateAnnotation] != state || key != "" && lease.Annotations[key] != value {
			return fmt.Errorf("it has %v", lease.Annotations)
		}
		return nil
	})
}

// heartbeat returns the size of the cluster's heartbeat, as a watch event carries it.
func (c *cluster) heartbeat() int {
	c.t.Helper()
	lease, err := c.Client().CoordinationV1().Leases(clusterset.Namespace).Get(c.t.Context(), member.HeartbeatLease,
		metav1.GetOptions{})
	must(c.t, err)
	return lease.Size()
}

// join has each cluster read the others, over ways that can be cut.
func join(t *testing.T, clusters ...*cluster) {
	t.Helper()
	for _, c := range clusters {
		for _, other := range clusters {
			if other == c {
				continue
			}
			kubeconfig, err := c.way(other).ServiceAccountKubeconfig(t.Context(), clusterset.Namespace, "clusterset-member")
			must(t, err)
			must(t, clusterset.Join(t.Context(), c.Cluster, other.Name(), kubeconfig))
		}
	}
}

// way is that on which the cluster reads another.
func (c *cluster) way(other *cluster) *controlplane.Remote {
	c.t.Helper()
	way, err := other.Remote(c.Name())
	must(c.t, err)
	return way
}

// accept limits what a member may contribute.
func (c *cluster) accept(of *cluster, patterns string) {
	c.t.Helper()
	_, err := c.Client().CoreV1().Secrets(clusterset.Namespace).Patch(c.t.Context(), clusterset.SecretOf(of.Name()),
		types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, accept.Annotation, patterns),
		metav1.PatchOptions{})
	must(c.t, err)
}

// newCluster prepares a control plane for a version.
func newCluster(t *testing.T, plane *controlplane.Cluster, v version, region string, judge *judge) *cluster {
	t.Helper()
	c := &cluster{Cluster: plane, root: t, t: t, judge: judge}
	c.grant(v)
	_, err := plane.Client().CoreV1().Namespaces().Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
	must(t, err)
	root, err := programs.Checkout()
	must(t, err)
	about, err := os.ReadFile(filepath.Join(root, "test", "sim", "testdata", "about.yaml"))
	must(t, err)
	must(t, clusterset.Apply(t.Context(), plane, about))
	controlplanetest.Eventually(t, "region of "+plane.Name(), func(ctx context.Context) error {
		return clusterset.Apply(ctx, plane, fmt.Appendf(nil,
			"{apiVersion: about.k8s.io/v1alpha1, kind: ClusterProperty, metadata: {name: region}, spec: {value: %s}}", region))
	})
	c.controllerUser, c.dnsUser, err = clusterset.WriteCredentials(t.Context(), plane)
	must(t, err)
	return c
}
