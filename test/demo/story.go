// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/clusterset-dns/clusterset-dns/controller/canary"
)

const (
	namespace = "demo"
	webName   = "web.demo.svc.clusterset.local."
	dbName    = "db.demo.svc.clusterset.local."
)

// A story is what the demo shows, on joined clusters. Every step checks what it prints. North is in another network, and takes
// part in one step alone.
type story struct {
	narrator
	kubectl           kubectl
	east, west, north *cluster
}

func (s *story) tell(ctx context.Context) error {
	for _, step := range []func(context.Context) error{
		s.exportWeb, s.reachNorth, s.exportDB, s.loseReadiness, s.cutPodNetwork, s.scaleToZero, s.unexport,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (s *story) clusters() []*cluster { return []*cluster{s.east, s.west} }

func (s *story) all() []*cluster { return []*cluster{s.east, s.west, s.north} }

// exportWeb exports a ClusterIP Service from both clusters: one name, in each
// cluster the IP of its own ServiceImport, and the local name stays as it was.
func (s *story) exportWeb(ctx context.Context) error {
	s.chapter("web: a Deployment behind a ClusterIP Service, exported by both clusters")
	if err := s.apply(ctx, "web.yaml"); err != nil {
		return err
	}
	since := time.Now()
	for _, c := range s.clusters() {
		ip, err := c.importIP(ctx)
		if err != nil {
			return err
		}
		elapsed, err := s.await(ctx, lookup{c.dns, webName, "A", ip}, since)
		if err != nil {
			return err
		}
		s.say("%s answers with the IP of its ServiceImport, %s after the last apply", c.name, milliseconds(elapsed))
	}
	if _, err := s.await(ctx, lookup{s.west.dns, "_http._tcp." + webName, "SRV", "0 100 80 " + webName}, since); err != nil {
		return err
	}
	s.say("and the name of each cluster's own Service is untouched:")
	for _, c := range s.clusters() {
		service, err := c.kube.CoreV1().Services(namespace).Get(ctx, "web", metav1.GetOptions{})
		if err != nil {
			return err
		}
		local := "web.demo.svc.cluster.local."
		if _, err := s.await(ctx, lookup{c.dns, local, "A", service.Spec.ClusterIP},
			since); err != nil {
			return err
		}
	}
	return s.explainWeb(ctx, s.west, "4 of 4 endpoints")
}

// explainWeb says where a cluster's endpoints of web come from, and how many of them get traffic.
func (s *story) explainWeb(ctx context.Context, c *cluster, traffic string) error {
	text, err := s.kubectl.plugin(ctx, "explain", namespace+"/web", "--contexts", c.name, "--dns", c.dns, "--controller", c.health)
	if want := "Traffic goes to " + traffic; err == nil && !strings.Contains(text, want) {
		err = fmt.Errorf("explain does not say %q", want)
	}
	return err
}

// reachNorth exports web from a cluster whose pods cannot be reached: the others get its nodes, and it gets theirs.
func (s *story) reachNorth(ctx context.Context) error {
	s.chapter("north is in another network, where pods have the same addresses as in east: nodes stand for pods")
	if err := s.kubectl.apply(ctx, s.north, "test/demo/manifests/web.yaml"); err != nil {
		return err
	}
	since := time.Now()
	for c, want := range map[*cluster]map[string]int{
		s.west: {"east": 2, "west": 2, "north": 2}, s.north: {"east": 2, "west": 2, "north": 2},
	} {
		if err := c.awaitBackends(ctx, want); err != nil {
			return err
		}
	}
	s.say("all clusters have all endpoints, %s after the export", milliseconds(time.Since(since)))
	for _, c := range []*cluster{s.west, s.north} {
		if err := s.explainWeb(ctx, c, "6 of 6 endpoints"); err != nil {
			return err
		}
	}
	if _, err := s.kubectl.plugin(ctx, "unexport", namespace+"/web", "--contexts", "north"); err != nil {
		return err
	}
	return s.west.awaitBackends(ctx, map[string]int{"east": 2, "west": 2})
}

// exportDB exports a headless Service from both clusters: the name has the pods
// of both, and each pod has a name of its own.
func (s *story) exportDB(ctx context.Context) error {
	s.chapter("db: a StatefulSet behind a headless Service, exported by both clusters")
	if err := s.apply(ctx, "db.yaml"); err != nil {
		return err
	}
	since := time.Now()
	ips, err := s.podIPs(ctx, 2, 2)
	if err != nil {
		return err
	}
	if err := s.knowPods(ctx, ips, since, "%s knows the pods of both clusters, %s after the last apply"); err != nil {
		return err
	}
	var targets []string
	for _, c := range s.clusters() {
		for _, pod := range []string{"db-0", "db-1"} {
			targets = append(targets,
				fmt.Sprintf("0 100 5432 %s.%s.%s", pod, c.name, dbName))
		}
	}
	if _, err := s.await(ctx, lookup{s.west.dns, "_postgresql._tcp." + dbName, "SRV", data(targets...)},
		since); err != nil {
		return err
	}
	pod := "db-0.east." + dbName
	ip, err := s.east.podIP(ctx, "db-0")
	if err != nil {
		return err
	}
	if _, err := s.await(ctx, lookup{s.west.dns, pod, "A", ip}, since); err != nil {
		return err
	}
	s.say("west reaches one pod of east by name")
	return nil
}

// knowPods waits until db has these addresses in each cluster, and says how long after since that was.
func (s *story) knowPods(ctx context.Context, ips []string, since time.Time, format string) error {
	for _, c := range s.clusters() {
		elapsed, err := s.await(ctx, lookup{c.dns, dbName, "A", data(ips...)}, since)
		if err != nil {
			return err
		}
		s.say(format, c.name, milliseconds(elapsed))
	}
	return nil
}

// loseReadiness takes a pod of east out of its Service, and back in.
func (s *story) loseReadiness(ctx context.Context) error {
	s.chapter("a pod of east fails its readiness probe")
	all, err := s.podIPs(ctx, 2, 2)
	if err != nil {
		return err
	}
	ip, err := s.east.podIP(ctx, "db-1")
	if err != nil {
		return err
	}
	var others []string
	for _, other := range all {
		if other != ip {
			others = append(others, other)
		}
	}
	for _, change := range []struct {
		status corev1.ConditionStatus
		want   []string
	}{
		{corev1.ConditionFalse, others},
		{corev1.ConditionTrue, all},
	} {
		patch := fmt.Sprintf(`{"status":{"conditions":[{"type":"Ready","status":%q}]}}`, change.status)
		s.command(
			fmt.Sprintf("kubectl --context east -n %s patch pod db-1 --subresource status -p '%s'", namespace, patch))
		// The clock starts before the call, so the figure includes the API server's own answer.
		since := time.Now()
		_, err := s.east.kube.CoreV1().Pods(namespace).Patch(ctx, "db-1", types.StrategicMergePatchType, []byte(patch),
			metav1.PatchOptions{}, "status")
		if err != nil {
			return fmt.Errorf("patch the readiness of pod db-1 in east: %w", err)
		}
		elapsed, err := s.await(ctx, lookup{s.west.dns, dbName, "A", data(change.want...)},
			since)
		if err != nil {
			return err
		}
		s.say("readiness %s in east reached the answer in west after %s", change.status, milliseconds(elapsed))
	}
	return nil
}

// cutPodNetwork: the pods of east cannot be reached, while its API server can. west moves traffic to its own pods, and
// back after the repair.
func (s *story) cutPodNetwork(ctx context.Context) error {
	if s.east.pods == nil {
		s.chapter("the pod network is not cut: %v", errNoAddress)
		return nil
	}
	s.chapter("the pod network is cut: connections to pods of east get no answer; its heartbeats arrive")
	if err := s.west.awaitPath(ctx, s.east, canary.Reachable); err != nil {
		return err
	}
	if err := s.east.pods.awaitProbes(ctx); err != nil {
		return err
	}
	all, err := s.podIPs(ctx, 2, 2)
	if err != nil {
		return err
	}
	local, err := s.west.awaitPods(ctx, "app=db", 2)
	if err != nil {
		return err
	}
	since := time.Now()
	if err := s.east.pods.cut(); err != nil {
		return fmt.Errorf("cut the pod network of east: %w", err)
	}
	elapsed, err := s.await(ctx, lookup{s.west.dns, dbName, "A", data(local...)}, since)
	if err != nil {
		return err
	}
	s.say("west demotes east: its own pods alone get traffic, %s after the cut", seconds(elapsed))
	s.say("web keeps its IP in west, and the endpoints of east stay as the last resort:")
	if err := s.explainWeb(ctx, s.west, "2 of 4 endpoints"); err != nil {
		return err
	}
	since = time.Now()
	if err := s.east.pods.repair(); err != nil {
		return fmt.Errorf("repair the pod network of east: %w", err)
	}
	elapsed, err = s.await(ctx, lookup{s.west.dns, dbName, "A", data(all...)}, since)
	if err != nil {
		return err
	}
	s.say("all pods get traffic again, %s after the repair", seconds(elapsed))
	return nil
}

// scaleToZero empties west: its names fail over to east.
func (s *story) scaleToZero(ctx context.Context) error {
	s.chapter("west is scaled to zero")
	if err := s.kubectl.scaleToZero(ctx, s.west); err != nil {
		return err
	}
	since := time.Now()
	ips, err := s.podIPs(ctx, 2, 0)
	if err != nil {
		return err
	}
	if err := s.knowPods(ctx, ips, since, "%s knows the pods of east alone, %s after the scaling"); err != nil {
		return err
	}
	gone := "db-0.west." + dbName
	if _, err := s.await(ctx, lookup{s.east.dns, gone, "A", "NXDOMAIN"}, since); err != nil {
		return err
	}
	ip, err := s.west.importIP(ctx)
	if err != nil {
		return err
	}
	if _, err := s.await(ctx, lookup{s.west.dns, webName, "A", ip}, since); err != nil {
		return err
	}
	s.say("web keeps its IP in west; behind it are the pods of east:")
	if err := s.west.awaitBackends(ctx, map[string]int{"east": 2, "west": 0}); err != nil {
		return err
	}
	return s.explainWeb(ctx, s.west, "2 of 2 endpoints")
}

// unexport takes back the exports, west's first.
func (s *story) unexport(ctx context.Context) error {
	s.chapter("both clusters take back their exports")
	for i, c := range []*cluster{s.west, s.east} {
		for _, name := range []string{"web", "db"} {
			if _, err := s.kubectl.plugin(ctx, "unexport", namespace+"/"+name, "--contexts", c.name); err != nil {
				return err
			}
		}
		if i == 0 {
			ip, err := s.west.importIP(ctx)
			if err != nil {
				return err
			}
			if _, err := s.await(ctx, lookup{s.west.dns, webName, "A", ip},
				time.Now()); err != nil {
				return err
			}
			s.say("west goes on importing what east still exports")
		}
	}
	since := time.Now()
	for _, c := range s.clusters() {
		elapsed, err := s.await(ctx, lookup{c.dns, webName, "A", "NXDOMAIN"}, since)
		if err != nil {
			return err
		}
		s.say("the name is gone from %s, %s after the last export", c.name, milliseconds(elapsed))
	}
	return nil
}

// apply applies one of the manifests in both clusters.
func (s *story) apply(ctx context.Context, manifest string) error {
	for _, c := range s.clusters() {
		if err := s.kubectl.apply(ctx, c, "test/demo/manifests/"+manifest); err != nil {
			return err
		}
	}
	return nil
}

// podIPs waits for so many ready pods of db in each cluster and returns their addresses.
func (s *story) podIPs(ctx context.Context, east, west int) ([]string, error) {
	var ips []string
	for c, count := range map[*cluster]int{s.east: east, s.west: west} {
		found, err := c.awaitPods(ctx, "app=db", count)
		if err != nil {
			return nil, err
		}
		ips = append(ips, found...)
	}
	return ips, nil
}

// poll waits until done says so.
func poll(ctx context.Context, what string, done func(context.Context) (bool, error)) error {
	err := wait.PollUntilContextTimeout(ctx, 5*time.Millisecond, patience, true, done)
	if err != nil {
		return fmt.Errorf("wait for %s: %w", what, err)
	}
	return nil
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

func milliseconds(d time.Duration) string { return fmt.Sprintf("%d ms", d.Milliseconds()) }
