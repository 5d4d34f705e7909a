// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"reflect"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

// Two services whose derived Services have the same name: such a pair takes seconds to find.
var (
	first  = types.NamespacedName{Namespace: "demo", Name: "s-k1qtda5r7c"}
	second = types.NamespacedName{Namespace: "demo", Name: "s-g9sgelsm7d"}
)

// A namespace holds the imports of first and second, and the one Service whose name both need.
type namespace struct {
	imports map[types.NamespacedName]*v1beta1.ServiceImport
	derived *corev1.Service
	slices  map[types.NamespacedName]map[string]int // by the Service that they belong to
	ip      string
	writes  int
}

func newNamespace() *namespace {
	return &namespace{
		imports: map[types.NamespacedName]*v1beta1.ServiceImport{},
		slices:  map[types.NamespacedName]map[string]int{}, ip: "10.96.0.7",
	}
}

// reconcile merges and writes one service, merging again after each write. Without a view nobody exports it.
func (n *namespace) reconcile(service types.NamespacedName, exported bool) {
	var views []*export.View
	if exported {
		views = append(views, newView("east", 1, "http:80/TCP", "10.1.0.1",
			func(v *export.View) { v.Service = service }))
	}
	observe := func() Observed {
		observed := newObserved("east")
		observed.Service, observed.ServiceExport = service, nil
		observed.ServiceImport, observed.DerivedService = n.imports[service], n.derived
		for other, namesake := range n.imports {
			if other != service {
				observed.Namesakes = append(observed.Namesakes, namesake)
			}
		}
		return observed
	}
	var result Result
	for range 3 {
		result = Merge(observe(), contribute(views...))
		switch wanted := result.ServiceImport; {
		case wanted == nil:
			delete(n.imports, service)
		case n.imports[service] == nil:
			wanted.UID = types.UID("uid-of-" + service.Name)
			wanted.CreationTimestamp = metav1.NewTime(day(len(n.imports) + 1))
			fallthrough
		default:
			n.imports[service] = wanted
		}
		result = Merge(observe(), contribute(views...))
		switch wanted := result.DerivedService; {
		case wanted == nil && n.derived != nil && export.IsManaged(n.derived) &&
			export.DerivedFor(n.derived) == service.Name:
			n.derived = nil
			n.writes++
		case wanted != nil:
			if wanted.Spec.ClusterIP == "" {
				wanted.Spec.ClusterIP, wanted.Spec.ClusterIPs = n.ip, []string{n.ip}
			}
			if !reflect.DeepEqual(n.derived, wanted) {
				n.writes++
			}
			n.derived = wanted
		}
	}
	n.slices[service] = map[string]int{}
	for _, slice := range result.EndpointSlices {
		n.slices[service][slice.Labels[export.LabelKubernetesService]]++
	}
}

func (n *namespace) ready(t *testing.T, service types.NamespacedName) metav1.Condition {
	t.Helper()
	return conditionOf(t, n.imports[service].Status.Conditions, "Ready")
}

// has checks which service has the Service, and that the other one has neither its IP nor endpoints behind it.
func (n *namespace) has(t *testing.T, has, hasNot types.NamespacedName) {
	t.Helper()
	if n.derived == nil || n.derived.Labels[export.LabelService] != has.Name ||
		n.derived.OwnerReferences[0].UID != n.imports[has].UID {
		t.Fatalf("the Service is %v, want that of %s", n.derived, has)
	}
	diff(t, "IPs", n.imports[has].Spec.IPs, []string{n.ip})
	diff(t, "slices", n.slices[has], map[string]int{n.derived.Name: 1})
	diff(t, "condition", n.ready(t, has).Reason, "Ready")
	other := n.imports[hasNot]
	if len(other.Spec.IPs) > 0 || other.Annotations[export.AnnotationDerivedService] != "" {
		t.Errorf("the other import has IPs %v and annotations %v", other.Spec.IPs, other.Annotations)
	}
	diff(t, "slices of the other", n.slices[hasNot], map[string]int{strings.ToUpper(hasNot.Name): 1})
	ready := n.ready(t, hasNot)
	if ready.Status != metav1.ConditionFalse || ready.Reason != ReasonNameCollision ||
		!strings.Contains(ready.Message, "demo/"+has.Name) || !strings.Contains(ready.Message, n.derived.Name) {
		t.Errorf("the other import has condition %v", ready)
	}
}

func TestDerivedNamesThatCollideComeToRest(t *testing.T) {
	n := newNamespace()
	for range 10 {
		n.reconcile(first, true)
		n.reconcile(second, true)
	}
	if n.writes != 1 {
		t.Errorf("the Service was written %d times", n.writes)
	}
	n.has(t, first, second)
}

// TestBothStateTheName: both imports were made at once.
func TestBothStateTheName(t *testing.T) {
	for name, test := range map[string]struct {
		gone  bool // the Service
		order []types.NamespacedName
	}{
		"while the Service is the older one's":         {false, []types.NamespacedName{second, first, second}},
		"while there is no Service":                    {true, []types.NamespacedName{second, first, second}},
		"while there is no Service, the older is next": {true, []types.NamespacedName{first, second}},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNamespace()
			n.reconcile(first, true)
			n.imports[second] = n.imports[first].DeepCopy()
			n.imports[second].Name, n.imports[second].UID = second.Name, "uid-of-second"
			n.imports[second].CreationTimestamp = metav1.NewTime(n.imports[first].CreationTimestamp.Add(time.Second))
			if test.gone {
				n.derived = nil
			}
			for _, service := range test.order {
				n.reconcile(service, true)
			}
			n.has(t, first, second)
		})
	}
}

// TestLabelThatNamesNobody: a label of which no derived Service has that name
// gives the Service to nobody, so that it is corrected.
func TestLabelThatNamesNobody(t *testing.T) {
	n := newNamespace()
	n.reconcile(first, true)
	n.derived = n.derived.DeepCopy()
	n.derived.Labels[export.LabelService] = "changed-by-hand"
	n.reconcile(first, true)
	n.reconcile(second, true)
	n.has(t, first, second)
}

// TestAdoptTakesNoServiceOfAnother: another implementation's Service is taken
// over with the import that it belongs to, and with no other.
func TestAdoptTakesNoServiceOfAnother(t *testing.T) {
	for of, taken := range map[string]bool{first.Name: true, second.Name: false, "": true} {
		service := &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: "demo", Name: export.DerivedServiceName(first)},
			Spec:       corev1.ServiceSpec{ClusterIP: "10.96.0.9", ClusterIPs: []string{"10.96.0.9"}},
		}
		if of != "" {
			service.OwnerReferences = []metav1.OwnerReference{{
				APIVersion: "multicluster.x-k8s.io/v1alpha1",
				Kind:       "ServiceImport", Name: of, Controller: ptr.To(true),
			}}
		}
		observed := newObserved("east")
		observed.Service, observed.DerivedService = first, service
		observed.ServiceImport = &v1beta1.ServiceImport{ObjectMeta: metav1.ObjectMeta{
			Namespace: "demo", Name: first.Name, Annotations: map[string]string{export.AnnotationAdopt: "true"},
		}}
		result := Merge(observed, contribute(newView("east", 1, "http:80/TCP", "10.1.0.1",
			func(v *export.View) { v.Service = first })))
		if (result.DerivedService != nil) != taken {
			t.Errorf("a Service of %q: the result has %v", of, result.DerivedService)
		}
	}
}

// TestATakenIPIsGivenUp: somebody deleted the derived Service, and another one got
// its IP, under which clients would reach another service.
func TestATakenIPIsGivenUp(t *testing.T) {
	views := contribute(newView("east", 1, "http:80/TCP", "10.1.0.1"))
	observed := newObserved("east")
	observed.ServiceImport = Merge(observed, views).ServiceImport
	observed.ServiceImport.Spec.IPs = []string{"10.96.0.7"}
	kept := Merge(observed, views)
	if got := kept.DerivedService.Spec.ClusterIP; got != "10.96.0.7" || len(kept.ServiceImport.Spec.IPs) != 1 {
		t.Errorf("the IP of a deleted Service: asked for %q, the import has %v", got, kept.ServiceImport.Spec.IPs)
	}
	observed.TakenIPs = []string{"10.96.0.7"}
	given := Merge(observed, views)
	if got := given.DerivedService.Spec.ClusterIP; got != "" || len(given.ServiceImport.Spec.IPs) > 0 {
		t.Errorf("an IP of another service: asked for %q, the import has %v", got, given.ServiceImport.Spec.IPs)
	}
}

// TestHeadlessUntilThereIsAnIP: an import that answers without an IP does not become one that answers nothing.
func TestHeadlessUntilThereIsAnIP(t *testing.T) {
	observed := newObserved("east")
	observed.ServiceImport = Merge(observed, contribute(newView("west", 1, "http:80/TCP", "10.2.0.1", func(v *export.View) {
		v.Spec.Type = v1beta1.Headless
	}))).ServiceImport
	if observed.ServiceImport.Spec.Type != v1beta1.Headless {
		t.Fatalf("the import is %s", observed.ServiceImport.Spec.Type)
	}
	views := contribute(newView("west", 1, "http:80/TCP", "10.2.0.1"))
	waits := Merge(observed, views)
	if waits.ServiceImport.Spec.Type != v1beta1.Headless || waits.DerivedService == nil {
		t.Errorf("without an IP it is %s, and asks for %v", waits.ServiceImport.Spec.Type, waits.DerivedService)
	}
	denied := observed
	denied.NoIP = "None is left."
	denied.ServiceImport = waits.ServiceImport
	if none := Merge(denied, views).ServiceImport; none.Spec.Type != v1beta1.Headless ||
		meta.FindStatusCondition(none.Status.Conditions, "Ready").Reason != ReasonClusterIPLimit {
		t.Errorf("if it may not get one, it is %s with %+v", none.Spec.Type, none.Status.Conditions)
	}
	observed.ServiceImport, observed.DerivedService = waits.ServiceImport, waits.DerivedService.DeepCopy()
	observed.DerivedService.Spec.ClusterIP, observed.DerivedService.Spec.ClusterIPs = "10.96.0.7", []string{"10.96.0.7"}
	has := Merge(observed, views).ServiceImport
	if has.Spec.Type != v1beta1.ClusterSetIP || len(has.Spec.IPs) != 1 || has.Annotations[export.AnnotationDerivedService] == "" {
		t.Errorf("with an IP it is %s with %v", has.Spec.Type, has.Spec.IPs)
	}
}
