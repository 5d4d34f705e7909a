// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/diff"
	"k8s.io/client-go/kubernetes"
	discoveryclient "k8s.io/client-go/kubernetes/typed/discovery/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/merge"
)

// sliceServer takes down which slices are written and deleted, and refuses some of them. Which ones are asked for is
// what is under test; real servers are met in test/controller.
type sliceServer struct {
	kubernetes.Interface
	discoveryclient.DiscoveryV1Interface
	discoveryclient.EndpointSliceInterface
	refused []string
	// gone are not there any more.
	gone  []string
	asked []string
}

func (s *sliceServer) DiscoveryV1() discoveryclient.DiscoveryV1Interface { return s }

func (s *sliceServer) EndpointSlices(string) discoveryclient.EndpointSliceInterface { return s }

func (s *sliceServer) take(verb string, slice *discoveryv1.EndpointSlice) (*discoveryv1.EndpointSlice, error) {
	s.asked = append(s.asked, verb+" "+slice.Name)
	if slices.Contains(s.gone, slice.Name) && verb == "update" {
		return nil, apierrors.NewNotFound(discoveryv1.Resource("endpointslices"), slice.Name)
	}
	if slices.Contains(s.refused, slice.Name) {
		return nil, apierrors.NewForbidden(discoveryv1.Resource("endpointslices"), slice.Name, context.DeadlineExceeded)
	}
	written := slice.DeepCopy()
	written.ResourceVersion = strconv.Itoa(2 * len(s.asked))
	return written, nil
}

func (s *sliceServer) Get(_ context.Context, name string, _ metav1.GetOptions) (*discoveryv1.EndpointSlice, error) {
	return nil, apierrors.NewNotFound(discoveryv1.Resource("endpointslices"), name)
}

func (s *sliceServer) Create(_ context.Context, slice *discoveryv1.EndpointSlice,
	_ metav1.CreateOptions,
) (*discoveryv1.EndpointSlice, error) {
	return s.take("create", slice)
}

func (s *sliceServer) Update(_ context.Context, slice *discoveryv1.EndpointSlice,
	_ metav1.UpdateOptions,
) (*discoveryv1.EndpointSlice, error) {
	return s.take("update", slice)
}

func (s *sliceServer) Delete(_ context.Context, name string, _ metav1.DeleteOptions) error {
	s.asked = append(s.asked, "delete "+name)
	if slices.Contains(s.refused, name) {
		return apierrors.NewForbidden(discoveryv1.Resource("endpointslices"), name, context.DeadlineExceeded)
	}
	return nil
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

type noMetrics struct{}

func (noMetrics) Written(_, _ *discoveryv1.EndpointSlice) {}

// slicePass is a pass of cluster east over the slices of a service.
func slicePass(server *sliceServer, observed merge.Observed, existing, desired string) *pass {
	observed.Cluster, observed.Service = "east", types.NamespacedName{Namespace: "demo", Name: "web"}
	return &pass{
		Applier:  &Applier{Core: server, Clock: clock.RealClock{}, Metrics: noMetrics{}, Recorder: record.NewFakeRecorder(10)},
		existing: Existing{Observed: observed, EndpointSlices: slicesOf(existing)},
		observed: observed,
		result:   merge.Result{ServiceImport: ownImport(), EndpointSlices: slicesOf(desired)},
	}
}

// TestFailureKeepsBackItsOwnCluster: a slice that cannot be written keeps what is
// there of its cluster, and nothing of the others.
func TestFailureKeepsBackItsOwnCluster(t *testing.T) {
	for name, test := range map[string]struct {
		existing, desired, refused string
		asked                      string
		// own tells whether the own export has failed.
		own bool
	}{
		"no failure": {
			"east-1 west-1", "east-2 west-2", "",
			"create east-2, create west-2, delete east-1, delete west-1", false,
		},
		"a new copy": {
			"east-1 west-1 north-1", "east-2 west-2 north-2", "west-2",
			"create east-2, create west-2, create north-2, delete east-1, delete north-1", false,
		},
		"a copy that changed": {
			"west-1 west-2 north-1", "west-2+", "west-2", "update west-2, delete north-1",
			false,
		},
		"a new own one":     {"east-1 west-1", "east-2", "east-2", "create east-2, delete west-1", true},
		"two copies of one": {"west-1", "west-2 west-3", "west-2 west-3", "create west-2, create west-3", false},
		"one copy of two clusters": {
			"west-1 north-1", "west-2 north-2", "west-2 north-2",
			"create west-2, create north-2", false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := &sliceServer{refused: strings.Fields(test.refused)}
			p := slicePass(server, merge.Observed{ServiceImport: ownImport()}, test.existing, test.desired)
			failed := p.writeSlices(t.Context())
			if err := p.removeRest(t.Context(), failed); err != nil {
				t.Errorf("removing failed: %v", err)
			}
			if got := strings.Join(server.asked, ", "); got != test.asked {
				t.Errorf("asked\n%s, want\n%s", got, test.asked)
			}
			for _, name := range server.refused {
				if err := failed.err(); err == nil || !strings.Contains(err.Error(), "demo/"+name) {
					t.Errorf("the failure of %s is not told: %v", name, err)
				}
			}
			if got := failed["east"] != nil; got != test.own {
				t.Errorf("failure of the own export: %v", failed["east"])
			}
		})
	}
}

// TestOwnFailuresAreMarked: the heartbeat stops for those, and for no others.
func TestOwnFailuresAreMarked(t *testing.T) {
	for refused, want := range map[string]bool{"east-2": true, "east-1": true, "west-2": false, "west-1": false} {
		p := slicePass(&sliceServer{refused: []string{refused}}, merge.Observed{ServiceImport: ownImport()},
			"east-1 west-1", "east-2 west-2")
		failed := p.writeSlices(t.Context())
		err := errors.Join(failed.err(), p.removeRest(t.Context(), failed))
		if (p.outcome.Unpublished != nil) != want || !strings.Contains(err.Error(), refused) {
			t.Errorf("%s is refused: got %v, %v", refused, p.outcome.Unpublished, err)
		}
	}
}

// TestCopiesWaitForTheirImport: where no import of ours is there to own new
// copies, those that they replace stay; what a cluster withdrew goes.
func TestCopiesWaitForTheirImport(t *testing.T) {
	ending := ownImport()
	ending.DeletionTimestamp = &metav1.Time{}
	for name, test := range map[string]struct {
		serviceImport     *v1beta1.ServiceImport
		existing, desired string
		gone              string
		asked             string
	}{
		"no import":                {nil, "west-1 north-1", "east-2 west-2", "", "create east-2, delete north-1"},
		"no import, a change":      {nil, "west-1 west-2", "west-2+", "", ""},
		"ending":                   {ending, "west-1 north-1", "east-2 west-2", "", "create east-2, delete north-1"},
		"ending, a change":         {ending, "west-1 west-2", "west-2+", "", "update west-2"},
		"ending, collected before": {ending, "west-1 west-2", "west-2+", "west-2", "update west-2"},
		"there": {
			ownImport(), "west-1 north-1", "east-2 west-2", "",
			"create east-2, create west-2, delete west-1, delete north-1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := &sliceServer{gone: strings.Fields(test.gone)}
			p := slicePass(server, merge.Observed{ServiceImport: test.serviceImport}, test.existing, test.desired)
			late := p.writeSlices(t.Context())
			if err := errors.Join(late.err(), p.removeRest(t.Context(), late)); err != nil {
				t.Errorf("got %v", err)
			}
			if got := strings.Join(server.asked, ", "); got != test.asked {
				t.Errorf("asked\n%s, want\n%s", got, test.asked)
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
	if err := late["east"]; !Changed(err) {
		t.Fatalf("got %v", err)
	}
	// It has no access: what is written would be a panic.
	if err := p.writeExportStatus(t.Context(), late["east"]); err != nil {
		t.Errorf("the status: %v", err)
	}
}

// TestForeignSliceStays: a slice of that name that somebody else made is not
// written, and no reason to keep anything back.
func TestForeignSliceStays(t *testing.T) {
	server := &sliceServer{}
	p := slicePass(server, merge.Observed{ServiceImport: ownImport()}, "west-1", "west-1+ west-2")
	delete(p.existing.EndpointSlices[0].Labels, export.LabelSliceManagedBy)
	if late := p.writeSlices(t.Context()); len(late) > 0 {
		t.Errorf("behind: %v", late)
	}
	if got := strings.Join(server.asked, ", "); got != "create west-2" {
		t.Errorf("asked %s", got)
	}
	if events := p.Recorder.(*record.FakeRecorder).Events; len(events) != 1 {
		t.Errorf("%d objects stand in the way, want 1", len(events))
	}
}

// TestMetadataOfOthersStaysOnSlices: what this controller sets on a slice is
// replaced, also what it set before and no longer wants.
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
	existing.UID, existing.ResourceVersion = "1", "7"
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
	want.UID, want.ResourceVersion = "1", "7"
	if got := withOthers(existing, desired); !reflect.DeepEqual(got, want) {
		t.Errorf("(-want +got):\n%s", diff.Diff(want, got))
	}
	if !reflect.DeepEqual(desired, before) {
		t.Errorf("the desired slice was changed:\n%s", diff.Diff(before, desired))
	}
}
