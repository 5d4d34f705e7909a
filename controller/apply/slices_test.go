// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/export/exporttest"
	"github.com/clusterset-dns/clusterset-dns/controller/merge"
)

// sliceServer records the requests for slices, which the tests check. It rejects some writes, and lacks some slices that
// the pass has in its cache. test/controller uses real servers.
type sliceServer struct{ refused, gone, asked []string }

func (s *sliceServer) answer(action clienttesting.Action) (bool, runtime.Object, error) {
	var name string
	var written *discoveryv1.EndpointSlice
	switch action := action.(type) {
	case clienttesting.UpdateAction: // or a creation
		written = action.GetObject().(*discoveryv1.EndpointSlice)
		name = written.Name
	case clienttesting.GetAction: // or a deletion
		name = action.GetName()
	}
	verb := action.GetVerb()
	if verb == "get" {
		return true, nil, apierrors.NewNotFound(action.GetResource().GroupResource(), name)
	}
	s.asked = append(s.asked, verb+" "+name)
	switch {
	case verb == "update" && slices.Contains(s.gone, name):
		return true, nil, apierrors.NewNotFound(action.GetResource().GroupResource(), name)
	case slices.Contains(s.refused, name):
		return true, nil, apierrors.NewForbidden(action.GetResource().GroupResource(), name, context.DeadlineExceeded)
	case written == nil:
		return true, nil, nil
	}
	written.ResourceVersion = strconv.Itoa(2 * len(s.asked))
	return true, written, nil
}

// slicesOf are slices of this controller, whose names begin with their cluster. A "+" after a name gives it a port.
func slicesOf(names string) []*discoveryv1.EndpointSlice {
	var result []*discoveryv1.EndpointSlice
	for _, field := range strings.Fields(names) {
		name, changed := strings.CutSuffix(field, "+")
		cluster, _, _ := strings.Cut(name, "-")
		slice := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{
			Name:   name,
			Labels: map[string]string{export.LabelSliceManagedBy: export.Manager, export.LabelSourceCluster: cluster},
		}}
		if changed {
			slice.Ports = []discoveryv1.EndpointPort{{}}
		}
		result = append(result, slice)
	}
	return result
}

func ownImport() *v1beta1.ServiceImport {
	return &v1beta1.ServiceImport{ObjectMeta: metav1.ObjectMeta{
		Name:   "web",
		Labels: map[string]string{export.LabelManagedBy: export.Manager},
	}}
}

// slicePass is a pass of cluster east over the slices of a service.
func slicePass(server *sliceServer, observed merge.Observed, existing, desired string) *pass {
	observed.Cluster, observed.Service = "east", types.NamespacedName{Namespace: "demo", Name: "web"}
	observed.EndpointSlices = slicesOf(existing)
	client := &fake.Clientset{}
	client.AddReactor("*", "endpointslices", server.answer)
	return &pass{
		Applier: &Applier{
			Core: client, Clock: clock.RealClock{}, Recorder: record.NewFakeRecorder(10),
		},
		observed: observed,
		result:   merge.Result{ServiceImport: ownImport(), EndpointSlices: slicesOf(desired)},
		outcome:  Outcome{Written: sets.Set[Version]{}},
	}
}

// TestSlices: if a slice cannot be written, old slices of its cluster stay, and those of other clusters are deleted. For
// a slice of the local cluster, Unpublished is set, because the heartbeat stops then. Without an import of this
// controller, which owns copies, new copies wait and the ones that they replace stay; withdrawn slices are deleted.
func TestSlices(t *testing.T) {
	own, ending := ownImport(), ownImport()
	ending.DeletionTimestamp = &metav1.Time{}
	for name, test := range map[string]struct {
		serviceImport     *v1beta1.ServiceImport
		existing, desired string
		refused, gone     string
		asked             string
		unpublished       bool
	}{
		"a new copy fails": {
			serviceImport: own, existing: "east-1 west-1 north-1", desired: "east-2 west-2 north-2", refused: "west-2",
			asked: "create east-2, create west-2, create north-2, delete east-1, delete north-1",
		},
		"a copy that changed fails": {
			serviceImport: own, existing: "west-1 west-2 north-1", desired: "west-2+", refused: "west-2", asked: "update west-2, delete north-1",
		},
		"a new own one fails": {
			serviceImport: own, existing: "east-1 west-1", desired: "east-2", refused: "east-2", asked: "create east-2, delete west-1",
			unpublished: true,
		},
		"a deletion of an own one fails": {serviceImport: own, existing: "east-1", refused: "east-1", asked: "delete east-1", unpublished: true},
		"no import":                      {existing: "west-1 north-1", desired: "east-2 west-2", asked: "create east-2, delete north-1"},
		"ending, a change":               {serviceImport: ending, existing: "west-1 west-2", desired: "west-2+", asked: "update west-2"},
		"ending, collected before": {
			serviceImport: ending, existing: "west-1 west-2", desired: "west-2+", gone: "west-2", asked: "update west-2",
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := &sliceServer{refused: strings.Fields(test.refused), gone: strings.Fields(test.gone)}
			p := slicePass(server, merge.Observed{ServiceImport: test.serviceImport}, test.existing, test.desired)
			late := p.writeSlices(t.Context())
			err := errors.Join(late.err(), p.removeRest(t.Context(), late))
			if got := strings.Join(server.asked, ", "); got != test.asked {
				t.Errorf("asked\n%s, want\n%s", got, test.asked)
			}
			if err != nil && len(server.refused) == 0 {
				t.Errorf("got %v", err)
			}
			for _, name := range server.refused {
				if err == nil || !strings.Contains(err.Error(), name) {
					t.Errorf("the failure of %s is not told: %v", name, err)
				}
			}
			if got := p.outcome.Unpublished; (got != nil) != test.unpublished {
				t.Errorf("the local cluster's slices are out of date: %v", got)
			}
		})
	}
}

// TestAChangeMeanwhileIsNoFailure: a slice of the local cluster that was changed or
// deleted while it was written is written in the next pass. The export stays ready.
func TestAChangeMeanwhileIsNoFailure(t *testing.T) {
	p := slicePass(&sliceServer{gone: []string{"east-1"}},
		merge.Observed{ServiceImport: ownImport(), ServiceExport: &v1beta1.ServiceExport{}}, "east-1", "east-1+")
	late := p.writeSlices(t.Context())
	if err := late["east"]; !Stale(err) {
		t.Fatalf("got %v", err)
	}
	// The Applier has no API: a write would panic.
	if err := p.writeExportStatus(t.Context(), late["east"]); err != nil {
		t.Errorf("the status: %v", err)
	}
}

// TestForeignSlices: a slice of another owner or with the label of another service, also in place of a copy, stays as it is, with
// an Event and an error, and blocks no deletion. A slice that the caches do not show yet is not foreign.
func TestForeignSlices(t *testing.T) {
	for _, label := range []string{"", "another", "web", "foreign", "foreign copy"} {
		foreign, live := label != "web", slicesOf("east-1")[0]
		live.Namespace, live.UID, live.Labels[export.LabelService] = "demo", "1", label
		if strings.HasPrefix(label, "foreign") {
			delete(live.Labels, export.LabelSliceManagedBy)
			live.Labels[export.LabelService] = "web"
		}
		client := fake.NewClientset(live)
		p := slicePass(nil, merge.Observed{ServiceImport: ownImport()}, "", "east-1+")
		if label == "foreign copy" {
			p.result.EndpointSlices[0].Labels[export.LabelSourceCluster] = "west"
		}
		p.result.EndpointSlices[0].Namespace, p.Core = "demo", client
		late := p.writeSlices(t.Context())
		var asked []string
		for _, action := range client.Actions() {
			asked = append(asked, action.GetVerb())
		}
		if got := strings.Join(asked, " "); got != "create get" || Stale(late.err()) != (label == "web") {
			t.Errorf("of service %q: asked %s, %v", label, got, late.err())
		}
		if got := len(p.Recorder.(*record.FakeRecorder).Events); (got == 1) != foreign || len(late) == 0 {
			t.Errorf("of service %q: %d Events, %v", label, got, late)
		}
	}
}

// TestMetadataOfOthersStaysOnSlices: labels and annotations of this controller on a slice are replaced, or removed if no
// longer desired. Metadata of other writers, including finalizers, stays.
func TestMetadataOfOthersStaysOnSlices(t *testing.T) {
	slice := func(labels, annotations map[string]string) *discoveryv1.EndpointSlice {
		return &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: annotations}}
	}
	existing := slice(
		map[string]string{export.LabelService: "web", export.LabelHeadless: "", "argocd.argoproj.io/instance": "shop"},
		map[string]string{
			export.AnnotationTriggerTime:           "then",
			export.AnnotationSnapshotPrefix + "v0": "old", "example.com/note": "theirs", export.AnnotationSRV: "priority=2",
		})
	existing.UID, existing.ResourceVersion, existing.Finalizers = "1", "7", []string{"example.com/wait"}
	desired := slice(
		map[string]string{export.LabelService: "web", export.LabelKubernetesService: "derived-web"},
		map[string]string{export.AnnotationSnapshotPrefix + "v1": "new"})
	before := desired.DeepCopy()
	want := slice(
		map[string]string{
			export.LabelService: "web", export.LabelKubernetesService: "derived-web",
			"argocd.argoproj.io/instance": "shop",
		},
		map[string]string{export.AnnotationSnapshotPrefix + "v1": "new", "example.com/note": "theirs"})
	want.UID, want.ResourceVersion, want.Finalizers = "1", "7", []string{"example.com/wait"}
	exporttest.Diff(t, "update", withOthers(existing, desired), want)
	exporttest.Diff(t, "the desired slice", desired, before)
}

// TestDerivedServiceOfAnotherStays: the names of two services' derived Services may be equal. A service that is no longer
// exported deletes only its own.
func TestDerivedServiceOfAnotherStays(t *testing.T) {
	service := types.NamespacedName{Namespace: "demo", Name: "s-k1qtda5r7c"}
	for label, gone := range map[string]bool{service.Name: true, "s-g9sgelsm7d": false, "names-nobody": false} {
		derived := &corev1.Service{ObjectMeta: metav1.ObjectMeta{
			Namespace: service.Namespace, Name: export.DerivedServiceName(service), UID: "1", ResourceVersion: "1",
			Labels: map[string]string{export.LabelManagedBy: export.Manager, export.LabelService: label},
		}}
		client := fake.NewClientset(derived)
		p := &pass{Applier: &Applier{Core: client, Clock: clock.RealClock{}}, observed: merge.Observed{Service: service, DerivedService: derived}}
		if err := p.removeRest(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		if asked := client.Actions(); (len(asked) == 1 && asked[0].GetVerb() == "delete") != gone || len(asked) > 1 {
			t.Errorf("labelled with %s: asked %v", label, asked)
		}
	}
}
