// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/locality"
	"github.com/clusterset-dns/clusterset-dns/controller/merge"
)

// preferring is a ServiceExport that exports the annotation.
func preferring(name, value string) string {
	return fmt.Sprintf(`
apiVersion: multicluster.x-k8s.io/v1beta1
kind: ServiceExport
metadata: {name: %s}
spec: {exportedAnnotations: {%q: %q}}
---
`, name, export.AnnotationPrefer, value)
}

// inZone is YAML of a Service with one endpoint in a zone.
func inZone(spec, name, address, zone string) string {
	return strings.ReplaceAll(serviceOf(spec, name, address), "conditions:", "zone: "+zone+", conditions:")
}

// hinted is the hints of an import in one comparable text: the zones of each
// endpoint, what the derived Service is told, and the condition that tells of it.
func (c *cluster) hinted(ctx context.Context, key types.NamespacedName) (string, error) {
	list, err := c.slicesOf(ctx, key)
	if err != nil {
		return "", err
	}
	var texts []string
	for _, slice := range list {
		for _, endpoint := range slice.Endpoints {
			zones := []string{"-"}
			if endpoint.Hints != nil {
				zones = nil
				for _, zone := range endpoint.Hints.ForZones {
					zones = append(zones, strings.TrimSuffix(zone.Name, "."+export.Domain))
				}
			}
			texts = append(texts, slice.Labels[export.LabelSourceCluster]+"="+strings.Join(zones, ","))
		}
	}
	slices.Sort(texts)
	derived, err := c.CoreV1().Services(key.Namespace).Get(ctx, export.DerivedServiceName(key), metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	texts = append(texts, ptr.Deref(derived.Spec.TrafficDistribution, "-"))
	serviceImport, err := c.serviceImport(ctx, key)
	if err != nil {
		return "", err
	}
	if condition := meta.FindStatusCondition(serviceImport.Status.Conditions, merge.ConditionPreferCluster); condition != nil {
		texts = append(texts, string(condition.Status)+" "+condition.Reason)
	}
	return strings.Join(texts, " "), nil
}

func expectHints(t testing.TB, c *cluster, key types.NamespacedName, want string) {
	t.Helper()
	eventually(t, "hints of "+key.String()+" in "+c.Name(), func(ctx context.Context) error {
		got, err := c.hinted(ctx, key)
		if err == nil && got != want {
			err = fmt.Errorf("got  %s\nwant %s", got, want)
		}
		return err
	})
}

// putNode makes a node in a zone, empty for none, or moves it there.
func (c *cluster) putNode(t testing.TB, name, zone string) {
	t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	_, err := c.CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{})
	if err == nil {
		t.Cleanup(func() {
			if err := c.CoreV1().Nodes().Delete(context.Background(), name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
				t.Error(err)
			}
		})
	} else if !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	label := "null"
	if zone != "" {
		label = fmt.Sprintf("%q", zone)
	}
	patch := fmt.Sprintf(`{"metadata":{"labels":{%q:%s}}}`, corev1.LabelTopologyZone, label)
	_, err = c.CoreV1().Nodes().Patch(t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	must(t, err)
}

func (c *cluster) removeNode(t testing.TB, name string) {
	t.Helper()
	must(t, c.CoreV1().Nodes().Delete(t.Context(), name, metav1.DeleteOptions{}))
}

// TestPreferCluster follows the hints of an import while nodes and zones come
// and go, the wish goes, and the controller is started anew.
func TestPreferCluster(t *testing.T) {
	t.Parallel()
	east, west := bed(t)
	east.join(t, west)
	west.join(t, east)
	stop := east.start(t)
	west.start(t)
	demo := namespace(t, east, west)
	web := key(demo, "web")
	east.create(t, demo, service("web", "10.64.0.10")+preferring("web", locality.PreferCluster))
	west.create(t, demo, service("web", "10.65.0.10")+preferring("web", locality.PreferCluster))
	const home = "east=east-a,east-b west=elsewhere PreferClose True Hinted"
	expectHints(t, east, web, home)
	expectHints(t, west, web, "east=elsewhere west=west-a,west-b PreferClose True Hinted")

	east.putNode(t, "east-new", "east-c")
	expectHints(t, east, web, "east=east-a,east-b,east-c west=elsewhere PreferClose True Hinted")
	east.putNode(t, "east-new", "east-d")
	expectHints(t, east, web, "east=east-a,east-b,east-d west=elsewhere PreferClose True Hinted")
	east.putNode(t, "east-new", "")
	expectHints(t, east, web, "east=east-a,east-b west=elsewhere PreferClose True NodesWithoutZone")
	eventually(t, "metric", east.metric(t, "clusterset_controller_nodes_without_zone", nil, 1))
	east.removeNode(t, "east-new")
	expectHints(t, east, web, home)
	for i := range locality.MaxZones - 1 {
		east.putNode(t, fmt.Sprintf("east-new-%d", i), fmt.Sprintf("zone-%d", i))
	}
	expectHints(t, east, web, "east=- west=- - False TooManyZones")
	east.removeNode(t, "east-new-0")
	expectHints(t, east, web, "east=east-a,east-b,zone-1,zone-2,zone-3,zone-4,zone-5,zone-6 west=elsewhere PreferClose True Hinted")
	for i := 1; i < locality.MaxZones-1; i++ {
		east.removeNode(t, fmt.Sprintf("east-new-%d", i))
	}
	expectHints(t, east, web, home)

	// An endpoint that comes has its hints at once.
	west.create(t, demo, endpoints("web", "10.65.0.10", "10.65.0.11"))
	expectHints(t, east, web, "east=east-a,east-b west=elsewhere west=elsewhere PreferClose True Hinted")

	quiet(t, east, west)
	before := east.written.String()
	stop()
	stop = east.start(t)
	eventually(t, "synced", east.metric(t, "clusterset_controller_member_synced", map[string]string{"cluster": "west"}, 1))
	eventually(t, "all looked at", east.metric(t, "clusterset_controller_queue_length", nil, 0))
	quiet(t, east)
	if after := east.written.String(); after != before {
		t.Errorf("a restart wrote:\nbefore %s\nafter  %s", before, after)
	}

	// A zone that comes while nobody looks.
	stop()
	east.putNode(t, "east-new", "east-c")
	east.start(t)
	expectHints(t, east, web, "east=east-a,east-b,east-c west=elsewhere west=elsewhere PreferClose True Hinted")

	east.create(t, demo, preferring("web", "moon"))
	west.create(t, demo, preferring("web", "moon"))
	expectHints(t, east, web, "east=- west=- west=- - False UnknownPreference")
	east.create(t, demo, serviceExport("web"))
	west.create(t, demo, serviceExport("web"))
	expectHints(t, east, web, "east=- west=- west=- -")
}

// TestPreferByFlag: the operator's preference is for imports that wish nothing
// themselves.
func TestPreferByFlag(t *testing.T) {
	t.Parallel()
	east, west := bed(t)
	east.options.Prefer = locality.PreferCluster
	joined(t, east, west)
	demo := namespace(t, east, west)
	const plain, zone = "{ports: [{name: http, port: 80}]}", "{ports: [{name: http, port: 80}], trafficDistribution: PreferSameZone}"
	for c, at := range map[*cluster][2]string{east: {"10.64.0.10", "east-a"}, west: {"10.65.0.10", "west-b"}} {
		c.create(t, demo, inZone(plain, "plain", at[0], at[1])+serviceExport("plain")+
			inZone(plain, "refuses", at[0], at[1])+preferring("refuses", locality.PreferNone)+
			inZone(zone, "zone", at[0], at[1])+serviceExport("zone")+
			inZone(zone, "both", at[0], at[1])+preferring("both", locality.PreferCluster))
	}
	expectHints(t, east, key(demo, "plain"), "east=east-a,east-b west=elsewhere PreferClose True Hinted")
	expectHints(t, west, key(demo, "plain"), "east=- west=- -")
	expectHints(t, east, key(demo, "refuses"), "east=- west=- -")
	for _, c := range []*cluster{east, west} {
		expectHints(t, c, key(demo, "zone"), "east=east-a west=west-b PreferSameZone")
	}
	expectHints(t, east, key(demo, "both"), "east=east-a,east-b west=elsewhere PreferSameZone True Hinted")
	expectHints(t, west, key(demo, "both"), "east=elsewhere west=west-a,west-b PreferSameZone True Hinted")
}

// TestPreferenceOutlivesAService: while a Service is replaced, what was wished of its import stays as it was, and the derived
// Service is not written.
func TestPreferenceOutlivesAService(t *testing.T) {
	t.Parallel()
	east, _ := bed(t)
	east.start(t)
	demo := namespace(t, east)
	web := key(demo, "web")
	text := service("web", "10.64.0.10") + preferring("web", locality.PreferCluster)
	east.create(t, demo, text)
	expectHints(t, east, web, "east=east-a,east-b PreferClose True Hinted")
	quiet(t, east)
	derived := func() string {
		service, err := east.CoreV1().Services(demo).Get(t.Context(), export.DerivedServiceName(web), metav1.GetOptions{})
		must(t, err)
		return service.ResourceVersion
	}
	before := derived()
	watched, err := east.mcs.MulticlusterV1beta1().ServiceImports(demo).Watch(t.Context(), metav1.ListOptions{})
	must(t, err)
	defer watched.Stop()

	must(t, east.CoreV1().Services(demo).Delete(t.Context(), "web", metav1.DeleteOptions{}))
	expect(t, web, "ClusterSetIP of  Pending []", east)
	quiet(t, east)
	if now := derived(); now != before {
		t.Errorf("the derived Service was written while there was no Service: version %s, before %s", now, before)
	}
	east.create(t, demo, text)
	expectHints(t, east, web, "east=east-a,east-b PreferClose True Hinted")
	quiet(t, east)
	if now := derived(); now != before {
		t.Errorf("the derived Service was written: version %s, before %s", now, before)
	}
	since := map[metav1.Time]bool{}
	for done := false; !done; {
		select {
		case event := <-watched.ResultChan():
			serviceImport, ok := event.Object.(*v1beta1.ServiceImport)
			if !ok {
				t.Fatalf("got %v", event.Object)
			}
			condition := meta.FindStatusCondition(serviceImport.Status.Conditions, merge.ConditionPreferCluster)
			if condition == nil {
				t.Fatalf("version %s of the import has the conditions %v", serviceImport.ResourceVersion, serviceImport.Status.Conditions)
			}
			since[condition.LastTransitionTime] = true
			ready := meta.FindStatusCondition(serviceImport.Status.Conditions, string(v1beta1.ServiceImportConditionReady))
			done = ready != nil && ready.Status == metav1.ConditionTrue && len(serviceImport.Status.Clusters) > 0 && event.Type == watch.Modified
		case <-time.After(patience):
			t.Fatal("the import did not become ready again")
		}
	}
	if len(since) != 1 {
		t.Errorf("the condition went and came: %v", since)
	}
}
