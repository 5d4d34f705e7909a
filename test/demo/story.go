// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/test/clusterset"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/process"
)

const (
	namespace = "demo"
	webName   = "web.demo.svc.clusterset.local."
	dbName    = "db.demo.svc.clusterset.local."
)

// A story is the sequence of the demo's steps. Each step checks what it prints. North is in another network and takes
// part in only one step; clusters are east and west.
type story struct {
	*narrator
	config            string // path of a kubeconfig with all clusters
	bin               string // the folder of the programs
	all, clusters     []*cluster
	east, west, north *cluster
}

func (s *story) tell(ctx context.Context) {
	s.join(ctx)
	s.exportWeb(ctx)
	s.reachNorth(ctx)
	s.exportDB(ctx)
	s.loseReadiness(ctx)
	s.cutPodNetwork(ctx)
	s.scaleToZero(ctx)
	s.unexport(ctx)
}

// join installs both programs in each cluster, and makes all clusters members of each other.
func (s *story) join(ctx context.Context) {
	s.chapter("install: rights, one CoreDNS and one controller in each cluster")
	for _, c := range s.all {
		s.apply(ctx, c, "deploy/rbac.yaml", "deploy/coredns-rbac.yaml")
		c.start(ctx, s.bin)
	}
	args := []string{"join", "east", "west", "north"}
	for _, c := range s.all {
		c.awaitReady(ctx)
		s.say("%s: CoreDNS at %s, controller ready", c.Name(), c.dns)
		args = append(args, "--server", c.Name()+"="+c.Config().Host)
	}
	s.chapter("join: each cluster gets a credential of each other, which reads EndpointSlices and a heartbeat and nothing else")
	s.plugin(ctx, args...)
	// The probe targets of the demo have an address of this machine.
	s.confine(ctx, s.east, "west", "0.0.0.0/0")
	s.confine(ctx, s.west, "east", "0.0.0.0/0")
}

// exportWeb exports a ClusterIP Service from both clusters: one name, which in each cluster resolves to the IP of its
// own ServiceImport. The local name does not change.
func (s *story) exportWeb(ctx context.Context) {
	s.chapter("web: a Deployment behind a ClusterIP Service, exported by both clusters")
	s.applyBoth(ctx, "web.yaml")
	since := time.Now()
	for _, c := range s.clusters {
		elapsed := s.await(ctx, c, webName, "A", c.importIP(ctx), since)
		s.say("%s answers with the IP of its ServiceImport, %s after the last apply", c.Name(), milliseconds(elapsed))
	}
	s.await(ctx, s.west, "_http._tcp."+webName, "SRV", "0 100 80 "+webName, since)
	s.say("and the name of each cluster's own Service is untouched:")
	for _, c := range s.clusters {
		service := get(c.Client().CoreV1().Services(namespace).Get(ctx, "web", metav1.GetOptions{}))
		s.await(ctx, c, "web.demo.svc.cluster.local.", "A", service.Spec.ClusterIP, since)
	}
	s.explainWeb(ctx, s.west, "4/4")
}

// explainWeb shows where a cluster's endpoints of web come from, and how many of them get traffic.
func (s *story) explainWeb(ctx context.Context, c *cluster, traffic string) {
	text := s.plugin(ctx, "explain", namespace+"/web", "--contexts", c.Name(), "--dns", c.Name()+"="+c.dns, "--controller", c.Name()+"="+c.controller.Address)
	if !strings.Contains(text, " "+traffic+" ") {
		must(fmt.Errorf("explain does not say %q", traffic))
	}
}

// reachNorth exports web from a cluster whose pods are unreachable: other clusters import its nodes, and it imports theirs.
func (s *story) reachNorth(ctx context.Context) {
	s.chapter("north is in another network, where pods have the same addresses as in east: nodes stand for pods")
	s.apply(ctx, s.north, "test/demo/manifests/web.yaml")
	since := time.Now()
	for _, c := range []*cluster{s.west, s.north} {
		c.awaitBackends(ctx, map[string]int{"east": 2, "west": 2, "north": 2})
	}
	s.say("all clusters have all endpoints, %s after the export", milliseconds(time.Since(since)))
	for _, c := range []*cluster{s.west, s.north} {
		s.explainWeb(ctx, c, "6/6")
	}
	s.plugin(ctx, "unexport", namespace+"/web", "--contexts", "north")
	s.west.awaitBackends(ctx, map[string]int{"east": 2, "west": 2})
}

// exportDB exports a headless Service from both clusters: the name resolves to the pods of both, and each pod has its
// own name.
func (s *story) exportDB(ctx context.Context) {
	s.chapter("db: a StatefulSet behind a headless Service, exported by both clusters")
	s.applyBoth(ctx, "db.yaml")
	since := time.Now()
	s.knowPods(ctx, s.podIPs(ctx, 2, 2), since, "%s knows the pods of both clusters, %s after the last apply")
	var targets []string
	for _, c := range s.clusters {
		for _, pod := range []string{"db-0", "db-1"} {
			targets = append(targets, fmt.Sprintf("0 100 5432 %s.%s.%s", pod, c.Name(), dbName))
		}
	}
	s.await(ctx, s.west, "_postgresql._tcp."+dbName, "SRV", data(targets...), since)
	s.await(ctx, s.west, "db-0.east."+dbName, "A", s.east.podIP(ctx, "db-0"), since)
	s.say("west reaches one pod of east by name")
}

// knowPods waits until db has these addresses in each cluster, and prints the time since since.
func (s *story) knowPods(ctx context.Context, ips []string, since time.Time, format string) {
	for _, c := range s.clusters {
		s.say(format, c.Name(), milliseconds(s.await(ctx, c, dbName, "A", data(ips...), since)))
	}
}

// loseReadiness removes a pod of east from its Service, and adds it again.
func (s *story) loseReadiness(ctx context.Context) {
	s.chapter("a pod of east fails its readiness probe")
	all, ip := s.podIPs(ctx, 2, 2), s.east.podIP(ctx, "db-1")
	others := slices.DeleteFunc(slices.Clone(all), func(other string) bool { return other == ip })
	for _, change := range []struct {
		status corev1.ConditionStatus
		want   []string
	}{
		{corev1.ConditionFalse, others},
		{corev1.ConditionTrue, all},
	} {
		patch := fmt.Sprintf(`{"status":{"conditions":[{"type":"Ready","status":%q}]}}`, change.status)
		s.command("kubectl --context east -n %s patch pod db-1 --subresource status -p '%s'", namespace, patch)
		// The clock starts before the request, so the figure includes the response time of the API server.
		since := time.Now()
		get(s.east.Client().CoreV1().Pods(namespace).Patch(ctx, "db-1", types.StrategicMergePatchType, []byte(patch),
			metav1.PatchOptions{}, "status"))
		elapsed := s.await(ctx, s.west, dbName, "A", data(change.want...), since)
		s.say("readiness %s in east reached the answer in west after %s", change.status, milliseconds(elapsed))
	}
}

// cutPodNetwork cuts the pods of east off, while its API server stays reachable. West moves traffic to its own pods,
// and back after the repair.
func (s *story) cutPodNetwork(ctx context.Context) {
	if s.east.pods == nil {
		s.chapter("the pod network is not cut: this machine has no address besides those of the loopback device")
		return
	}
	s.chapter("the pod network is cut: connections to pods of east get no answer; its heartbeats arrive")
	s.west.awaitPath(ctx, s.east)
	all, local := s.podIPs(ctx, 2, 2), s.west.awaitPods(ctx, 2)
	since := time.Now()
	s.east.pods.cut()
	elapsed := s.await(ctx, s.west, dbName, "A", data(local...), since)
	s.say("west demotes east: its own pods alone get traffic, %.1f s after the cut", elapsed.Seconds())
	s.say("web keeps its IP in west, and the endpoints of east stay as the last resort:")
	s.explainWeb(ctx, s.west, "2/4")
	since = time.Now()
	s.east.pods.repair()
	elapsed = s.await(ctx, s.west, dbName, "A", data(all...), since)
	s.say("all pods get traffic again, %.1f s after the repair", elapsed.Seconds())
}

// scaleToZero scales west to zero: its names fail over to east.
func (s *story) scaleToZero(ctx context.Context) {
	s.chapter("west is scaled to zero")
	s.scaleWorkloads(ctx, s.west)
	since := time.Now()
	s.knowPods(ctx, s.podIPs(ctx, 2, 0), since, "%s knows the pods of east alone, %s after the scaling")
	s.await(ctx, s.east, "db-0.west."+dbName, "A", "NXDOMAIN", since)
	s.await(ctx, s.west, webName, "A", s.west.importIP(ctx), since)
	s.say("web keeps its IP in west; behind it are the pods of east:")
	s.west.awaitBackends(ctx, map[string]int{"east": 2})
	s.explainWeb(ctx, s.west, "2/2")
}

// unexport withdraws the exports, west's first.
func (s *story) unexport(ctx context.Context) {
	s.chapter("both clusters take back their exports")
	for _, c := range []*cluster{s.west, s.east} {
		for _, name := range []string{"web", "db"} {
			s.plugin(ctx, "unexport", namespace+"/"+name, "--contexts", c.Name())
		}
		if c == s.west {
			s.await(ctx, s.west, webName, "A", s.west.importIP(ctx), time.Now())
			s.say("west goes on importing what east still exports")
		}
	}
	since := time.Now()
	for _, c := range s.clusters {
		elapsed := s.await(ctx, c, webName, "A", "NXDOMAIN", since)
		s.say("the name is gone from %s, %s after the last export", c.Name(), milliseconds(elapsed))
	}
}

// podIPs waits for this many ready pods of db in each cluster, and returns their addresses.
func (s *story) podIPs(ctx context.Context, east, west int) []string {
	return append(s.east.awaitPods(ctx, east), s.west.awaitPods(ctx, west)...)
}

func milliseconds(d time.Duration) string { return fmt.Sprintf("%d ms", d.Milliseconds()) }

// apply applies files of the checkout, the demo's working directory, and prints the output of kubectl, which is not needed.
func (s *story) apply(ctx context.Context, c *cluster, files ...string) {
	s.command("kubectl --context %s apply --server-side -f %s", c.Name(), strings.Join(files, " -f "))
	for _, file := range files {
		stream := get(os.ReadFile(file))
		must(c.Apply(ctx, stream))
		for _, each := range get(clusterset.Objects(stream)) {
			kind := each.GroupVersionKind().GroupKind()
			s.output(strings.ToLower(kind.String()) + "/" + each.GetName() + " serverside-applied")
		}
	}
}

// applyBoth applies one of the manifests in east and west.
func (s *story) applyBoth(ctx context.Context, manifest string) {
	for _, c := range s.clusters {
		s.apply(ctx, c, "test/demo/manifests/"+manifest)
	}
}

// confine sets the CIDRs of another cluster's pods.
func (s *story) confine(ctx context.Context, c *cluster, other, ranges string) {
	name := clusterset.SecretOf(other)
	s.command("kubectl --context %s -n %s annotate --overwrite secret %s %s=%s", c.Name(), clusterset.Namespace, name,
		member.CIDRsAnnotation, ranges)
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, member.CIDRsAnnotation, ranges)
	get(c.Client().CoreV1().Secrets(clusterset.Namespace).Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{}))
	s.output("secret/" + name + " annotated")
}

// scaleWorkloads scales the workloads of the demo to zero.
func (s *story) scaleWorkloads(ctx context.Context, c *cluster) {
	s.command("kubectl --context %s -n %s scale deployment/web statefulset/db --replicas=0", c.Name(), namespace)
	none := []byte(`{"spec":{"replicas":0}}`)
	get(c.Client().AppsV1().Deployments(namespace).Patch(ctx, "web", types.MergePatchType, none, metav1.PatchOptions{}, "scale"))
	get(c.Client().AppsV1().StatefulSets(namespace).Patch(ctx, "db", types.MergePatchType, none, metav1.PatchOptions{}, "scale"))
	s.output("deployment.apps/web scaled\nstatefulset.apps/db scaled")
}

// plugin runs kubectl clusterset, and returns its output.
func (s *story) plugin(ctx context.Context, args ...string) string {
	s.command("kubectl clusterset %s", strings.Join(args, " "))
	var out bytes.Buffer
	command := exec.CommandContext(ctx, filepath.Join(s.bin, "kubectl-clusterset"), args...)
	command.Env = append(os.Environ(), "KUBECONFIG="+s.config)
	command.Stdout, command.Stderr = &out, &out
	err := process.StartTied(command)
	if err == nil {
		err = command.Wait()
	}
	s.output(out.String())
	must(err)
	return out.String()
}
