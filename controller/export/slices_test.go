// SPDX-License-Identifier: Apache-2.0

package export

import (
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/clusterset-dns/clusterset-dns/controller/scope"
)

// hostile is a slice of cluster east that no controller of this project would write.
func hostile(change func(*discoveryv1.EndpointSlice)) []*discoveryv1.EndpointSlice {
	slice := &discoveryv1.EndpointSlice{AddressType: discoveryv1.AddressTypeIPv4}
	slice.Namespace, slice.Name = "demo", "web-east-1"
	slice.Labels = map[string]string{LabelService: "web", LabelSourceCluster: "east", LabelSliceManagedBy: Manager}
	slice.Annotations = map[string]string{AnnotationSnapshot: good}
	slice.Endpoints = []discoveryv1.Endpoint{{Addresses: []string{"10.1.0.1"}}}
	change(slice)
	return []*discoveryv1.EndpointSlice{slice}
}

const good = `{"cluster":"east","service":{"created":"2026-03-01T12:00:00Z","type":"ClusterSetIP","ports":[{"protocol":"TCP","port":80}],"ipFamilies":["IPv4"]},` +
	`"slice":{"name":"web-east-1","targets":[{"protocol":"TCP","port":80,"target":8080}]}}`

// altered changes a part of the snapshot of hostile.
func altered(old, replacement string) func(*discoveryv1.EndpointSlice) {
	return func(s *discoveryv1.EndpointSlice) {
		if !strings.Contains(good, old) {
			panic(old)
		}
		s.Annotations[AnnotationSnapshot] = strings.Replace(good, old, replacement, 1)
	}
}

// problemsOf is the problem with the slice of hostile, as texts has it.
func problemsOf(text string) []string {
	if text == "" {
		return nil
	}
	return []string{strings.Replace(text, ": ", ": EndpointSlice demo/web-east-1: ", 1)}
}

// TestRefusedSlices: slices that are refused as a whole.
func TestRefusedSlices(t *testing.T) {
	type refused struct {
		change func(*discoveryv1.EndpointSlice)
		want   string // reason and sentence, empty if the slice is ignored silently
	}
	const notOurs = `BadSnapshot: its namespace or labels are not those of service demo/web in cluster "east"`
	unknown := map[string]string{AnnotationSnapshotPrefix + "v9": "x", AnnotationSnapshotPrefix + "v8": "x"}
	tests := map[string]refused{
		"not ours":         {labelled(LabelSliceManagedBy, "other"), ""},
		"another source":   {labelled(LabelSourceCluster, "west"), notOurs},
		"FQDN":             {func(s *discoveryv1.EndpointSlice) { s.AddressType = "FQDN" }, `BadSnapshot: address type "FQDN" is not known`},
		"no snapshot":      {func(s *discoveryv1.EndpointSlice) { s.Annotations = nil }, `BadSnapshot: it has no snapshot`},
		"unknown versions": {func(s *discoveryv1.EndpointSlice) { s.Annotations = unknown }, `BadSnapshot: its snapshot is of unknown version "v8"; upgrade this controller`},
	}
	for _, row := range []struct{ name, old, replacement, want string }{
		{"too large", good, strings.Repeat(" ", 256<<10) + good, `BadSnapshot: its snapshot has 262375 bytes; the limit is 262144`},
		{"wrong cluster", `"east"`, `"west"`, `BadSnapshot: its snapshot is of cluster "west", but it was read from "east"`},
		{"relative clusters", `"east",`, `"east","clusters":"local",`, `BadSnapshot: its snapshot does not parse: cluster selector, term "local": it has another meaning in each cluster; use ids and properties`},
		{"no slice name", `"name":"web-east-1",`, ``, `BadSnapshot: its snapshot is of slice ""`},
		{"another slice's name", `"web-east-1"`, `"web-east-2"`, `BadSnapshot: its snapshot is of slice "web-east-2"`},
		{"an endless network", `"name":"web-east-1",`, `"name":"web-east-1","network":"` + strings.Repeat("x", scope.MaxBytes+1) + `",`, `BadSnapshot: network "` + strings.Repeat("x", 100) + `" or exposure "" is too long`},
		{"no service", `"service"`, `"x"`, `BadSnapshot: it has no service`},
		{"a year that cannot be written", `2026-03-01T12:00:00Z`, `9999-12-31T23:59:59-23:00`, `BadSnapshot: year 10000 of creation cannot be written`},
		{"a second before the first possible time", `2026-03-01T12:00:00Z`, `2014-05-31T23:59:59Z`, `BadSnapshot: its creation time 2014-05-31T23:59:59Z is before Kubernetes existed: create the ServiceExport again with the clock of its API server corrected`},
		{"unknown type", `ClusterSetIP`, `ExternalName`, `BadSnapshot: type "ExternalName" is not known`},
		{"no family", `["IPv4"]`, `[]`, `BadSnapshot: it has no IP family`},
		{"bad family", `["IPv4"]`, `["IPv4","IPX"]`, `BadSnapshot: IP family "IPX" is not known or repeated`},
		{"repeated family", `["IPv4"]`, `["IPv4","IPv4"]`, `BadSnapshot: IP family "IPv4" is not known or repeated`},
		{"bad port name", `"port":80}]`, `"port":80,"name":"A_b"}]`, `BadSnapshot: port "A_b", 80/TCP with appProtocol "", is not valid`},
		{"bad port number", `"port":80}]`, `"port":65536}]`, `BadSnapshot: port "", 65536/TCP with appProtocol "", is not valid`},
		{"bad protocol", `"TCP"`, `"ICMP"`, `BadSnapshot: port "", 80/ICMP with appProtocol "", is not valid`},
		{"bad appProtocol", `"port":80}]`, `"port":80,"appProtocol":"a b"}]`, `BadSnapshot: port "", 80/TCP with appProtocol "a b", is not valid`},
		{"repeated port", `"port":80}]`, `"port":80},{"name":"b","protocol":"TCP","port":80}]`, `BadSnapshot: port "b", 80/TCP, is repeated`},
		{"repeated port name", `"port":80}]`, `"port":80},{"protocol":"UDP","port":81}]`, `BadSnapshot: port "", 81/UDP, is repeated`},
		{"bad traffic distribution", `"ipFamilies"`, `"trafficDistribution":"a b","ipFamilies"`, `BadSnapshot: traffic distribution "a b" is not valid`},
		{"bad affinity timeout", `"ipFamilies"`, `"sessionAffinity":"ClientIP","sessionAffinityConfig":{"clientIP":{"timeoutSeconds":86401}},"ipFamilies"`, `BadSnapshot: session affinity timeout 86401 is not from 1 to 86400 seconds`},
		{"bad target", `"target":8080`, `"target":0`, `BadSnapshot: a target port is not valid`},
		{"many ports", `{"protocol":"TCP","port":80}`, strings.Repeat(`{},`, 100) + `{}`, `BadSnapshot: it has 101 ports; the limit is 100`},
	} {
		tests[row.name] = refused{altered(row.old, row.replacement), row.want}
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			view, found, _ := FromSlices(Source{Cluster: "east"}, web, hostile(test.change), nil)
			if view != nil {
				t.Errorf("view = %v", view)
			}
			diff(t, "problems", texts(found), problemsOf(test.want))

			if test.want == "" {
				return
			}
			// The last known copy stays.
			known, _, _ := FromSlices(Source{Cluster: "east"}, web, hostile(func(*discoveryv1.EndpointSlice) {}), nil)
			kept, _, used := FromSlices(Source{Cluster: "east"}, web, hostile(test.change), copied(known))
			diff(t, "view with a copy", kept, known)
			diff(t, "the copy", used, copied(known))
			// While slices are not accepted, the copies are used, even if the local cluster has moved to another network.
			kept, found, used = FromSlices(Source{Cluster: "east", Keep: true, Network: "another"}, web, hostile(test.change), copied(known))
			diff(t, "view of the copies", kept, known)
			diff(t, "the copies", used, copied(known))
			diff(t, "problems with the copies", len(found), 0)
		})
	}
}

// TestRefusedNames: a label may have a value that no Service can have as its name.
func TestRefusedNames(t *testing.T) {
	name := types.NamespacedName{Namespace: "demo", Name: "Foo_Bar"}
	view, found, _ := FromSlices(Source{Cluster: "east"}, name, hostile(func(s *discoveryv1.EndpointSlice) { s.Labels[LabelService] = name.Name }), nil)
	diff(t, "problems", texts(found), problemsOf(`BadSnapshot: no Service can have the name "Foo_Bar"`))
	if view != nil {
		t.Errorf("view %v", view)
	}
}

// TestSkippedParts: invalid parts are left out while the rest is used.
func TestSkippedParts(t *testing.T) {
	type change = func(*discoveryv1.EndpointSlice)
	at := func(addresses ...string) (all []discoveryv1.Endpoint) {
		for _, address := range addresses {
			all = append(all, discoveryv1.Endpoint{Addresses: []string{address}})
		}
		return all
	}
	endpoints := func(all ...discoveryv1.Endpoint) change {
		return func(s *discoveryv1.EndpointSlice) { s.Endpoints = all }
	}
	triggered := func(at string) change {
		return func(s *discoveryv1.EndpointSlice) { s.Annotations[AnnotationTriggerTime] = at }
	}
	one := at("10.1.0.1")[0]
	type skipped struct {
		change  change
		want    func(*View) // nil if nothing else changes
		problem string
	}
	tests := map[string]skipped{
		"endpoint without address": {endpoints(discoveryv1.Endpoint{}, one), nil, "BadEndpoint: an endpoint has no address"},
		"bad address":              {endpoints(at("10.1.0.1", "::1", "169.254.169.254")...), nil, "BadAddress: ::1 is not an IPv4 address"},
		"too many endpoints": {
			endpoints(slices.Repeat([]discoveryv1.Endpoint{one}, 1001)...),
			func(v *View) { v.Slices[0].Endpoints = slices.Repeat(v.Slices[0].Endpoints, 1000) },
			"BadEndpoint: it has 1001 endpoints; those above 1000 are left out",
		},
		"an address in another form": { // this controller never writes one
			func(s *discoveryv1.EndpointSlice) {
				s.AddressType, s.Endpoints = discoveryv1.AddressTypeIPv6, at("FD00::1", "fd00::2")
			},
			func(v *View) {
				v.Slices[0].AddressType, v.Slices[0].Endpoints[0].Addresses = "IPv6", []string{"fd00::2"}
			},
			`BadAddress: "FD00::1" is not in canonical form, fd00::1`,
		},
		"bad hostname": {
			endpoints(discoveryv1.Endpoint{Addresses: one.Addresses, Hostname: ptr.To("a.b")}),
			nil, `BadEndpoint: hostname "a.b" is not valid and left out`,
		},
		"bad zone": {
			endpoints(discoveryv1.Endpoint{Addresses: one.Addresses, Zone: ptr.To("a b")}),
			nil, `BadEndpoint: zone "a b" is not valid and left out`,
		},
		"not ready, and no word of the rest": { // kube-proxy takes it as serving, too
			endpoints(discoveryv1.Endpoint{Addresses: one.Addresses, Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(false)}}),
			func(v *View) { v.Slices[0].Endpoints[0].Conditions = Conditions(false, true, false) },
			"",
		},
		"affinity config without a timeout": {
			altered(`"ipFamilies"`, `"sessionAffinity":"ClientIP","sessionAffinityConfig":{"clientIP":{}},"ipFamilies"`),
			func(v *View) {
				v.Spec.SessionAffinity = "ClientIP"
				v.Spec.SessionAffinityConfig = &corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: ptr.To[int32](10800)}}
			}, "",
		},
		"trigger time without end": {
			triggered("2026-03-01T12:00:00." + strings.Repeat("1", 1000) + "Z"),
			func(v *View) { v.Slices[0].TriggerTime = "2026-03-01T12:00:00.111111111Z" }, "",
		},
	}
	for _, row := range []struct{ name, old, replacement, problem string }{
		{"bad affinity", `"ipFamilies"`, `"sessionAffinity":"x","ipFamilies"`, ""},
		{"bad traffic policy", `"ipFamilies"`, `"internalTrafficPolicy":"x","ipFamilies"`, ""},
		{"target of no port", `"target":8080}`, `"target":8080},{"protocol":"UDP","port":80,"target":9090}`, ""},
		{"fields of later versions", good, regexp.MustCompile(`"(cluster|created|name|protocol|target)":`).ReplaceAllString(good, `"later":{"a":[1]},$0`), ""},
	} {
		tests[row.name] = skipped{altered(row.old, row.replacement), nil, row.problem}
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			want, found, _ := FromSlices(Source{Cluster: "east"}, web, hostile(func(*discoveryv1.EndpointSlice) {}), nil)
			if want == nil || len(found) > 0 {
				t.Fatalf("a good slice is refused: %v", found)
			}
			if test.want != nil {
				test.want(want)
			}
			got, found, _ := FromSlices(Source{Cluster: "east"}, web, hostile(test.change), nil)
			diff(t, "view", got, want)
			diff(t, "problems", texts(found), problemsOf(test.problem))
		})
	}
}

// TestSlicesDisagree: the first valid slice by name provides the spec. A slice with too many ports is refused, even if its
// spec is not used.
func TestSlicesDisagree(t *testing.T) {
	slice := func(name, distribution string) *discoveryv1.EndpointSlice {
		s := hostile(func(*discoveryv1.EndpointSlice) {})[0]
		s.Name = name
		s.Annotations[AnnotationSnapshot] = strings.NewReplacer(`"web-east-1"`, `"`+name+`"`, `"ipFamilies"`, distribution+
			`"ipFamilies"`).Replace(good)
		return s
	}
	all := []*discoveryv1.EndpointSlice{
		slice("web-1", `"type":"x",`),
		slice("web-2", `"trafficDistribution":"b",`),
		slice("web-3", `"trafficDistribution":"c",`),
		slice("web-4", `"ports":[`+strings.Repeat(`{},`, 100)+`{}],`),
	}
	all[3].Annotations[AnnotationSnapshot] = strings.Replace(all[3].Annotations[AnnotationSnapshot], `{`, `{"absent":true,`, 1)
	for range 20 {
		rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		view, found, _ := FromSlices(Source{Cluster: "east"}, web, all, nil)
		if got := view.Spec.TrafficDistribution; got != "b" {
			t.Fatalf("slice %q speaks for the service", got)
		}
		if len(view.Slices) != 2 || view.Slices[0].Name != "web-2" || view.Slices[1].Name != "web-3" {
			t.Fatalf("slices %v", view.Slices)
		}
		diff(t, "problems", texts(found), []string{
			`BadSnapshot: EndpointSlice demo/web-1: type "x" is not known`,
			`BadSnapshot: EndpointSlice demo/web-4: it has 101 ports; the limit is 100`,
		})
	}
}

// TestKeptSlices: the copy of an unreadable slice stays, other slices change, and deleted slices are removed.
func TestKeptSlices(t *testing.T) {
	view := mustView(t, newExport(), newService("80/TCP"),
		newSlice("a", "80/TCP", "10.1.0.1"), newSlice("b", "80/TCP", "10.1.0.2"), newSlice("d", "80/TCP", "10.1.0.3")) // named in another order
	now := publish(view)[:2]
	for _, slice := range now {
		slice.Endpoints[0].Addresses = []string{"10.9.9.9"}
	}
	now[0].Annotations[AnnotationSnapshot] = "x"
	got, found, used := FromSlices(Source{Cluster: "east"}, web, now, copied(view))
	if len(found) != 1 || found[0].Reason != ReasonBadSnapshot || len(used) != 1 {
		t.Errorf("problems %v, copies %v", found, used)
	}
	var addresses []string
	for _, slice := range got.Slices {
		addresses = append(addresses, slice.Endpoints[0].Addresses...)
	}
	diff(t, "addresses", addresses, []string{view.Slices[0].Endpoints[0].Addresses[0], "10.9.9.9"})

	if gone, _, _ := FromSlices(Source{Cluster: "east"}, web, nil, copied(view)); gone != nil {
		t.Errorf("an export without slices is still there: %v", gone)
	}
	six := mustView(t, newExport(), newService("80/TCP"), newSlice("a", "80/TCP", "fd00::1"))
	now = publish(six)
	now[0].Annotations = nil
	if _, _, used = FromSlices(Source{Cluster: "east"}, web, now, copied(six)); len(used) != 1 {
		t.Errorf("of an IPv6 slice, the copies %v count", used)
	}
}

// TestStrip: the annotation for the exporting cluster's own DNS is dropped, and a hostile member cannot fill memory with
// fields that the controller does not read.
func TestStrip(t *testing.T) {
	want := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "demo", Name: "web", ResourceVersion: "7", DeletionTimestamp: &metav1.Time{Time: created},
			Annotations: map[string]string{AnnotationSnapshotPrefix + "v9": "{}", AnnotationTriggerTime: "t"},
			Labels:      map[string]string{LabelService: "web", LabelExposed: "web", LabelSourceCluster: "east", LabelSliceManagedBy: Manager},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints: []discoveryv1.Endpoint{
			{Addresses: []string{"10.1.0.1"}, Hostname: ptr.To("web-0"), Zone: ptr.To("a"), Conditions: Conditions(true, true, false)}, {},
		},
	}
	full := want.DeepCopy()
	full.Annotations[AnnotationSRV], full.Annotations["other"], full.Labels["other"] = "x", "x", "x"
	full.GenerateName, full.Finalizers, full.OwnerReferences = "web-", []string{"x"}, []metav1.OwnerReference{{Name: "x"}}
	full.ManagedFields, full.Ports = []metav1.ManagedFieldsEntry{{Manager: "x"}}, []discoveryv1.EndpointPort{{}}
	endpoint := &full.Endpoints[0]
	endpoint.Addresses, endpoint.NodeName = append(endpoint.Addresses, "10.1.0.2"), ptr.To("node")
	endpoint.TargetRef, endpoint.Hints = &corev1.ObjectReference{Name: "x"}, &discoveryv1.EndpointHints{}
	endpoint.DeprecatedTopology = map[string]string{"a": "b"}
	diff(t, "kept", Strip(full), want)
}

// TestManyRefusedSlices: a member decides how many slices are refused, so their cost must not grow with the square of the number.
func TestManyRefusedSlices(t *testing.T) {
	const many = 200
	var published, copies []*discoveryv1.EndpointSlice
	service := types.NamespacedName{Namespace: "demo", Name: "web"}
	for i := range many {
		name := strconv.Itoa(i)
		published = append(published, hostile(func(s *discoveryv1.EndpointSlice) { s.Name, s.Annotations = name, nil })...)
		copies = append(copies, hostile(func(s *discoveryv1.EndpointSlice) { s.Name = SliceName("east", service, name, s.AddressType) })...)
	}
	if each := testing.AllocsPerRun(1, func() {
		FromSlices(Source{Cluster: "east"}, service, published, copies)
	}) / many; each > 400 {
		t.Errorf("%.0f allocations for each slice", each)
	}
}
