// SPDX-License-Identifier: Apache-2.0

package kubectl

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	plugin "github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/test/clusterset"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/assets"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/controlplanetest"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/programs"
)

const system = member.DefaultNamespace

// A cluster is a control plane with our controller and our CoreDNS.
type cluster struct {
	*controlplane.Cluster
	controller *clusterset.Program
	// id is that of the controller; empty while the test has stopped it.
	id  string
	dns *clusterset.Program
	// way is the one by which the others reach its API server.
	way *controlplane.Remote
}

// A bed is the clusters, and a user who has them in a kubeconfig.
type bed struct {
	east, west, north *cluster
	programs          string
	environment       []string
	kubeconfigs       []string
}

func newBed(t *testing.T) *bed {
	t.Helper()
	bin, err := programs.Build(t.Context(), "cmd/kubectl-clusterset", "cmd/clusterset-controller", "cmd/coredns")
	must(t, err)
	b := &bed{programs: bin}
	paths, err := assets.Ensure(t.Context(), os.Stderr, assets.Kubectl)
	must(t, err)
	planes := controlplanetest.Start(t,
		controlplane.Options{Name: "east"},
		controlplane.Options{Name: "west"},
		// Its API server lets no token live longer.
		controlplane.Options{Name: "north", APIServerArgs: []string{"--service-account-max-token-expiration=1h"}},
	)
	for _, plane := range planes {
		path := filepath.Join(plane.Directory(), "user.kubeconfig")
		must(t, plane.WriteKubeconfig(path))
		b.kubeconfigs = append(b.kubeconfigs, path)
	}
	b.environment = append(os.Environ(),
		"PATH="+b.programs+":"+filepath.Dir(paths[assets.Kubectl])+":"+os.Getenv("PATH"))
	b.east, b.west, b.north = b.cluster(t, planes[0]), b.cluster(t, planes[1]), b.cluster(t, planes[2])
	return b
}

func (b *bed) all() []*cluster { return []*cluster{b.east, b.west, b.north} }

// cluster installs the rights and starts both programs.
func (b *bed) cluster(t *testing.T, plane *controlplane.Cluster) *cluster {
	t.Helper()
	c := &cluster{Cluster: plane}
	must(t, clusterset.Install(t.Context(), plane))
	b.startController(t, c, plane.Name())
	t.Cleanup(func() { b.stopController(t, c) })
	b.serve(t, c)
	t.Cleanup(func() { must(t, c.dns.Kill()) })
	way, err := plane.Remote("others")
	must(t, err)
	c.way = way
	return c
}

// serve has a CoreDNS with the plugin answer in a cluster.
func (b *bed) serve(t *testing.T, c *cluster) {
	t.Helper()
	credential, err := clusterset.WriteCredential(t.Context(), c.Cluster, metav1.NamespaceSystem, "clusterset-coredns")
	must(t, err)
	c.dns, err = clusterset.StartDNS(c.Cluster, filepath.Join(b.programs, "coredns"), credential)
	must(t, err)
	controlplanetest.Eventually(t, "CoreDNS of "+c.Name(), func(ctx context.Context) error {
		_, err := plugin.DNSAt(c.dns.Address).Ask(ctx, "clusterset.local", "SOA")
		return err
	})
}

// startController runs the controller of a cluster under an id.
func (b *bed) startController(t testing.TB, c *cluster, id string) {
	t.Helper()
	credential, err := clusterset.WriteCredential(t.Context(), c.Cluster, system, "clusterset-controller")
	must(t, err)
	c.controller, err = clusterset.StartController(c.Cluster, filepath.Join(b.programs, "clusterset-controller"),
		credential,
		"--cluster-id", id, "--stale-after", "20s", "--leader-elect=false")
	must(t, err)
	c.id = id
}

// restart starts the controllers that ended by themselves, as kubelets do.
func (b *bed) restart(t testing.TB) {
	t.Helper()
	for _, c := range b.all() {
		if c.id != "" && !c.controller.Running() {
			b.startController(t, c, c.id)
		}
	}
}

// stopController ends the controller of a cluster.
func (b *bed) stopController(t *testing.T, c *cluster) {
	t.Helper()
	if t.Failed() {
		t.Logf("the log of %s's controller ends:\n%s", c.Name(), c.controller.LogTail(4096))
	}
	c.id = ""
	if err := c.controller.Stop(context.Background(), 5*time.Second); err != nil {
		t.Error(err)
	}
}

// dnsFlags name the DNS of each cluster.
func (b *bed) dnsFlags() []string {
	var flags []string
	for _, c := range b.all() {
		flags = append(flags, "--dns", c.Name()+"="+c.dns.Address)
	}
	return flags
}

// contexts are those of all clusters.
func (b *bed) contexts() []string {
	var names []string
	for _, c := range b.all() {
		names = append(names, c.Name())
	}
	return names
}

// A result is what a command said.
type result struct {
	out, err string
	status   int
}

// run runs kubectl clusterset.
func (b *bed) run(t testing.TB, args ...string) result {
	t.Helper()
	b.restart(t)
	if slices.Contains([]string{"status", "explain", "check", "sysdump", "version", "drain", "undrain"}, args[0]) {
		args = append(args, b.controllers()...)
	}
	return b.command(t, filepath.Join(b.programs, "kubectl-clusterset"), args...)
}

// controllers are the flags with the addresses of the controllers, which are no pods.
func (b *bed) controllers() (flags []string) {
	for _, c := range b.all() {
		flags = append(flags, "--controller="+c.Name()+"="+c.controller.Address)
	}
	return flags
}

// do runs kubectl clusterset, which must work.
func (b *bed) do(t testing.TB, args ...string) string {
	t.Helper()
	got := b.run(t, args...)
	if got.status != 0 {
		t.Fatalf("kubectl clusterset %s: exit status %d\n%s%s", strings.Join(args, " "), got.status, got.out, got.err)
	}
	return got.out
}

var draining = regexp.MustCompile(`kubectl clusterset (un)?drain `)

// shell runs what a user would type, which must work.
func (b *bed) shell(t testing.TB, line string) string {
	t.Helper()
	if draining.MatchString(line) { // and they run
		line = draining.ReplaceAllString(line, "$0 "+strings.Join(b.controllers(), " ")+" ")
	}
	got := b.command(t, "/bin/sh", "-ec", line)
	if got.status != 0 {
		t.Fatalf("%s: exit status %d\n%s%s", line, got.status, got.out, got.err)
	}
	return got.out
}

// apply applies YAML in a cluster.
func (b *bed) apply(t testing.TB, c *cluster, text string) {
	t.Helper()
	must(t, clusterset.Apply(t.Context(), c.Cluster, []byte(text)))
}

func (b *bed) command(t testing.TB, program string, args ...string) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, program, args...)
	command.Env = append(slices.Clone(b.environment), "KUBECONFIG="+strings.Join(b.kubeconfigs, string(os.PathListSeparator)))
	var out, err bytes.Buffer
	command.Stdout, command.Stderr = &out, &err
	failed := command.Run()
	var exit *exec.ExitError
	if failed != nil && !errors.As(failed, &exit) {
		t.Fatal(failed)
	}
	return result{out: out.String(), err: err.String(), status: command.ProcessState.ExitCode()}
}

var must = controlplanetest.Must

// eventually waits until check, which runs programs, is nil.
func eventually(t testing.TB, what string, check func() error) {
	t.Helper()
	controlplanetest.Eventually(t, what, func(context.Context) error { return check() })
}

// namespace makes one in each of the clusters, and removes it with the test.
func (b *bed) namespace(t testing.TB, name string, clusters ...*cluster) {
	t.Helper()
	for _, c := range clusters {
		namespaces := c.Client().CoreV1().Namespaces()
		_, err := namespaces.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}},
			metav1.CreateOptions{})
		must(t, err)
		t.Cleanup(func() {
			if err := namespaces.Delete(context.Background(), name,
				metav1.DeleteOptions{}); !apierrors.IsNotFound(err) {
				must(t, err)
			}
		})
	}
}

// pods are the ranges of a cluster's pods, separated by commas.
func (b *bed) pods(c *cluster) string {
	var ranges []string
	for _, prefix := range c.Options().PodCIDRs {
		ranges = append(ranges, prefix.String())
	}
	return strings.Join(ranges, ",")
}

// service makes a Service with endpoints.
func (b *bed) service(t testing.TB, c *cluster, namespace, name string, port int, addresses ...string) {
	t.Helper()
	quoted := make([]string, len(addresses))
	for i, address := range addresses {
		quoted[i] = fmt.Sprintf("{addresses: [%q], conditions: {ready: true, serving: true, terminating: false}}",
			address)
	}
	b.apply(t, c,
		fmt.Sprintf(
			`{apiVersion: v1, kind: Service, metadata: {namespace: %[1]s, name: %[2]s}, spec: {ports: [{name: http, port: %[3]d, targetPort: 8080}]}}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {namespace: %[1]s, name: %[2]s-manual, labels: {kubernetes.io/service-name: %[2]s}}
addressType: IPv4
ports: [{name: http, port: 8080, protocol: TCP}]
endpoints: [%[4]s]`, namespace, name, port, strings.Join(quoted, ", ")))
}

var (
	times   = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`)
	hosts   = regexp.MustCompile(`127\.0\.0\.1:\d+`)
	virtual = regexp.MustCompile(`10\.16\d\.\d+\.\d+`)
	spaces  = regexp.MustCompile(` {2,}`)
	ends    = regexp.MustCompile(`(?m) +$`)
)

// stable is a text without what differs between two runs.
func stable(text string) string {
	text = times.ReplaceAllString(text, "TIME")
	text = hosts.ReplaceAllString(text, "ADDRESS")
	text = virtual.ReplaceAllString(text, "IP")
	text = ends.ReplaceAllString(text, "")
	return spaces.ReplaceAllStringFunc(text, func(run string) string {
		if run == "  " {
			return run
		}
		return "   "
	})
}
