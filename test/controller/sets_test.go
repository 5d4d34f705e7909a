// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/controlplanetest"
)

// TestLifeInSets lives the life of a service in sets of two to five clusters.
// Each step ends in the same objects everywhere.
func TestLifeInSets(t *testing.T) {
	east, west := bed(t)
	north, south := more(t, "north", "south")
	young := newCluster(t, controlplanetest.Start(t, controlplane.Options{Name: "young", Zones: []string{}})[0])
	// Sorted by name, which decides between exports of the same second.
	for _, set := range [][]*cluster{{east, young}, {east, west, young}, {east, north, west, young}, {east, north, south, west, young}} {
		t.Run(fmt.Sprintf("%d clusters", len(set)), func(t *testing.T) {
			l := &life{T: t, set: set, last: young}
			l.older()
			l.begin()
			l.upgrade()
			l.scale()
			l.ports()
			l.types()
			l.namespaceGoes()
			l.membership()
			if len(set) == 5 {
				restFor(t, 30*time.Second, set...)
			} else {
				quiet(t, set...)
			}
			l.unexports()
			l.end()
		})
	}
}

// life is that of the service web in a set.
type life struct {
	*testing.T
	set  []*cluster
	last *cluster // of the set; its CRDs are upgraded
	web  types.NamespacedName
}

const (
	lifeAddress = "10.80.0.%d"
	lifePorts   = "{ports: [{name: http, port: 80, targetPort: 8080}, {name: more, port: 81, targetPort: 8081}]}"
)

// older gives the last cluster CRDs of years ago.
func (l *life) older() {
	old, err := os.ReadFile("testdata/crds-2020.yaml")
	must(l, err)
	must(l, l.last.InstallCRDs(l.Context(), controlplane.CRDsNone))
	l.last.create(l, "", string(old))
	for _, kind := range []string{"serviceexports", "serviceimports"} {
		served := l.last.Dynamic().Resource(schema.GroupVersionResource{Group: "multicluster.x-k8s.io", Version: "v1alpha1", Resource: kind})
		eventually(l.T, kind+" of 2020", func(ctx context.Context) error {
			_, err := served.List(ctx, metav1.ListOptions{})
			return err
		})
	}
}

// begin starts a controller in each cluster and makes all members of each
// other.
func (l *life) begin() {
	for _, c := range l.set {
		for _, other := range l.set {
			if other != c {
				c.join(l, other)
			}
		}
		c.start(l)
	}
	l.web = key(namespace(l.T, l.set...), "web")
}

// end lets all leave.
func (l *life) end() {
	for _, c := range l.set {
		for _, other := range l.set {
			if other != c {
				c.leave(l, other)
			}
		}
	}
}

// upgrade lets each cluster export the service, one after the other. The last
// has older CRDs, which are upgraded.
func (l *life) upgrade() {
	for i, c := range l.set {
		text := service("web", fmt.Sprintf(lifeAddress, i+1)) + serviceExport("web")
		if c == l.last {
			text = strings.ReplaceAll(text, "v1beta1", "v1alpha1")
		}
		c.create(l, l.web.Namespace, text)
		l.same("ClusterSetIP", i+1, false)
	}
	l.last.imported2020(l, l.web.Namespace, "web", len(l.set))
	must(l, l.last.InstallCRDs(l.Context(), controlplane.CRDsAll))
	l.same("ClusterSetIP", len(l.set), true)
	l.conflict("NoConflicts")
}

// scale is up, to nothing, and back.
func (l *life) scale() {
	both := func(i int) string { return fmt.Sprintf(lifeAddress+" "+lifeAddress, i+1, i+101) }
	for i, c := range l.set {
		c.create(l, l.web.Namespace, endpoints("web", strings.Fields(both(i))...))
		l.shows(c, both(i))
	}
	first := l.set[0]
	first.create(l, l.web.Namespace, endpoints("web"))
	l.shows(first, "")
	first.create(l, l.web.Namespace, endpoints("web", fmt.Sprintf(lifeAddress, 1)))
	l.shows(first, fmt.Sprintf(lifeAddress, 1))
}

// ports gives the oldest a port more: a conflict, until all have it.
func (l *life) ports() {
	for i, c := range l.set {
		manifest, _, _ := strings.Cut(serviceOf(lifePorts, "web"), "---")
		c.create(l, l.web.Namespace, manifest)
		if i < len(l.set)-1 {
			l.conflict("PortConflict")
		}
	}
	l.conflict("NoConflicts")
}

// types makes the service headless: the oldest decides.
func (l *life) types() {
	for i, c := range l.set {
		must(l, c.CoreV1().Services(l.web.Namespace).Delete(l.Context(), "web", metav1.DeleteOptions{}))
		expectConditions(l, c, l.web, "Conflict=NoConflicts Ready=Failed Valid=NoService")
		c.create(l, l.web.Namespace, headless("web", fmt.Sprintf(lifeAddress, i+1)))
		if i == 0 {
			l.conflict("PortConflict,TypeConflict")
		}
		l.same("Headless", len(l.set), true)
	}
	l.conflict("NoConflicts")
}

// namespaceGoes is in the last cluster, and comes back.
func (l *life) namespaceGoes() {
	namespaces, count := l.last.CoreV1().Namespaces(), len(l.set)
	must(l, namespaces.Delete(l.Context(), l.web.Namespace, metav1.DeleteOptions{}))
	eventually(l, "namespace gone", func(ctx context.Context) error {
		if _, err := namespaces.Get(ctx, l.web.Namespace, metav1.GetOptions{}); err == nil {
			return errors.New("it is there")
		}
		return nil
	})
	l.same("Headless", count-1, false)
	l.last.createNamespace(l, l.web.Namespace)
	l.same("Headless", count-1, true)
	l.last.create(l, l.web.Namespace, headless("web", fmt.Sprintf(lifeAddress, count))+serviceExport("web"))
	l.same("Headless", count, true)
}

// membership lets the first cluster leave, and join.
func (l *life) membership() {
	first, others := l.set[0], l.set[1:]
	for _, c := range others {
		c.leave(l, first)
		first.leave(l, c)
	}
	expect(l, l.web, "Headless of "+first.Name()+" Ready ["+first.Name()+"/"+fmt.Sprintf(lifeAddress, 1)+"]", first)
	l.agree(others, "Headless", others)
	for _, c := range others {
		c.join(l, first)
		first.join(l, c)
	}
	l.same("Headless", len(l.set), true)
}

// unexports is the oldest first.
func (l *life) unexports() {
	for i, c := range l.set {
		c.unexport(l, l.web)
		if left := l.set[i+1:]; len(left) > 0 {
			l.agree(l.set, "Headless", left)
		}
	}
	expect(l, l.web, "none", l.set...)
}

// same waits until the first of the clusters export the service and all of the
// set have the same objects of that, the last one only if it is asked for.
func (l *life) same(kind string, count int, last bool) {
	l.Helper()
	where := l.set
	if !last {
		where = l.set[:len(l.set)-1]
	}
	l.agree(where, kind, l.set[:count])
}

// agree waits until the service is exported by the others and all of the
// clusters have the same objects of that.
func (l *life) agree(clusters []*cluster, kind string, exporters []*cluster) {
	l.Helper()
	var names []string
	for _, c := range exporters {
		names = append(names, c.Name())
	}
	begin := fmt.Sprintf("type: %s\nclusters: %s\n", kind, strings.Join(names, " "))
	eventually(l, "the same import everywhere", func(ctx context.Context) error {
		var first string
		for i, c := range clusters {
			got, err := c.common(ctx, l.web)
			switch {
			case err != nil:
				return fmt.Errorf("%s: %w", c.Name(), err)
			case !strings.HasPrefix(got, begin):
				return fmt.Errorf("%s has\n%s\nwant\n%s", c.Name(), got, begin)
			case i == 0:
				first = got
			case got != first:
				return fmt.Errorf("%s has\n%s\n%s has\n%s", clusters[0].Name(), first, c.Name(), got)
			}
		}
		return nil
	})
}

// common is what is the same in all clusters of a set: the import but for its
// IPs and families, and the slices but for their hints and names.
func (c *cluster) common(ctx context.Context, key types.NamespacedName) (string, error) {
	serviceImport, err := c.serviceImport(ctx, key)
	if err != nil {
		return "", err
	}
	if !meta.IsStatusConditionTrue(serviceImport.Status.Conditions, "Ready") {
		return "", fmt.Errorf("conditions %v", serviceImport.Status.Conditions)
	}
	var clusters []string
	for _, each := range serviceImport.Status.Clusters {
		clusters = append(clusters, each.Cluster)
	}
	spec := serviceImport.Spec.DeepCopy()
	spec.IPs, spec.IPFamilies = nil, nil
	list, err := c.slicesOf(ctx, key)
	if err != nil {
		return "", err
	}
	var parts []string
	for _, slice := range list {
		for i := range slice.Endpoints {
			endpoint := &slice.Endpoints[i]
			endpoint.Hints, endpoint.NodeName, endpoint.TargetRef = nil, nil, nil
		}
		slices.SortFunc(slice.Ports, func(a, b discoveryv1.EndpointPort) int { return cmp.Compare(*a.Name, *b.Name) })
		text, err := json.MarshalIndent(map[string]any{
			"source": slice.Labels[export.LabelSourceCluster], "type": slice.AddressType, "ports": slice.Ports, "endpoints": slice.Endpoints,
		}, "", " ")
		if err != nil {
			return "", err
		}
		parts = append(parts, string(text))
	}
	slices.Sort(parts)
	text, err := json.MarshalIndent(map[string]any{"spec": spec, "labels": serviceImport.Labels, "annotations": serviceImport.Annotations}, "", " ")
	return fmt.Sprintf("type: %s\nclusters: %s\n%s%s", spec.Type, strings.Join(clusters, " "), text, strings.Join(parts, "")), err
}

// shows waits until all clusters have these endpoints of one, and agree.
func (l *life) shows(of *cluster, addresses string) {
	l.Helper()
	eventually(l, "endpoints of "+of.Name(), func(ctx context.Context) error {
		for _, c := range l.set {
			list, err := c.slicesOf(ctx, l.web)
			if err != nil {
				return err
			}
			var got []string
			for _, slice := range list {
				for _, endpoint := range slice.Endpoints {
					if slice.Labels[export.LabelSourceCluster] == of.Name() {
						got = append(got, endpoint.Addresses...)
					}
				}
			}
			if text := strings.Join(got, " "); text != addresses {
				return fmt.Errorf("%s has %q, want %q", c.Name(), text, addresses)
			}
		}
		return nil
	})
	l.agree(l.set, "ClusterSetIP", l.set)
}

// conflict waits until every export of the set has that condition.
func (l *life) conflict(reason string) {
	l.Helper()
	for _, c := range l.set {
		expectConditions(l, c, l.web, "Conflict="+reason+" Ready=Ready Valid=Valid")
	}
}
