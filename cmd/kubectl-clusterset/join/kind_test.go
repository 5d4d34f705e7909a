// SPDX-License-Identifier: Apache-2.0

package join

import (
	"bytes"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/progress"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/controller/rotation"
)

// between returns the peering by which west reads east, whose clusters have objects.
func between(source, reader []runtime.Object) *peering {
	return &peering{
		source:   &cluster.Cluster{Context: "east", Namespace: system, Kube: fake.NewClientset(source...)},
		sourceID: "east",
		reader:   &cluster.Cluster{Context: "west", Namespace: system, Kube: fake.NewClientset(reader...)},
		readerID: "west",
	}
}

func beats(lifetime string) *coordinationv1.Lease {
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: member.HeartbeatLease, Namespace: system}}
	if lifetime != "" {
		lease.Annotations = map[string]string{rotation.HeartbeatAnnotation: lifetime}
	}
	return lease
}

func TestChoose(t *testing.T) {
	account := func(name, reader string) *corev1.ServiceAccount {
		return &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: system, Labels: map[string]string{rotation.ReaderLabel: reader},
		}}
	}
	known := account("clusterset-member-west", "west")
	const year = 365 * 24 * time.Hour
	for name, test := range map[string]struct {
		source   []runtime.Object
		reader   []runtime.Object
		kind     string
		duration time.Duration
		renewed  bool
		missing  string // with KindRenewed
	}{
		"both renew": {[]runtime.Object{beats("1440h0m0s"), known}, []runtime.Object{beats("24h0m0s")}, "", year, true, ""},
		"a token is wanted": {
			[]runtime.Object{beats("1440h0m0s"), known}, []runtime.Object{beats("24h0m0s")}, KindToken, year, false, "",
		},
		"no expiry is wanted": {
			[]runtime.Object{beats("1440h0m0s"), known}, []runtime.Object{beats("24h0m0s")}, "", 0, false, "",
		},
		"the source does not": {
			[]runtime.Object{beats(""), known}, []runtime.Object{beats("24h0m0s")}, "", year, false, "controller of east does not",
		},
		"the reader does not": {
			[]runtime.Object{beats("24h0m0s"), known}, []runtime.Object{beats("")}, "", year, false, "controller of west does not",
		},
		"a lifetime that is none": {
			[]runtime.Object{beats("1"), known}, []runtime.Object{beats("24h0m0s")}, "", year, false, "controller of east does not",
		},
		"no account": {
			[]runtime.Object{beats("24h0m0s")}, []runtime.Object{beats("24h0m0s")}, "", year, false, "tokenReaders",
		},
		"the account of another": {
			[]runtime.Object{beats("24h0m0s"), account("clusterset-member-west", "north")},
			[]runtime.Object{beats("24h0m0s")},
			"", year, false, "tokenReaders",
		},
	} {
		var said bytes.Buffer
		o := Options{Kind: test.kind, Duration: test.duration, Teller: progress.Teller{Out: &said, Results: &said}}
		got, lifetime, err := o.choose(t.Context(), between(test.source, test.reader))
		if err != nil || got != test.renewed || got && lifetime != 1440*time.Hour {
			t.Errorf("%s: renewed %v for %v, %v", name, got, lifetime, err)
		}
		if got != strings.Contains(said.String(), "west reads east with a token that the controller of east renews") {
			t.Errorf("%s: it says %q", name, said.String())
		}
		if test.missing == "" {
			continue
		}
		o.Kind = KindRenewed
		if _, _, err := o.choose(t.Context(), between(test.source, test.reader)); err == nil ||
			!strings.Contains(err.Error(), test.missing) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// TestProjected finds what the chart renders for members[].audience.
func TestProjected(t *testing.T) {
	deployment := func(argument, path string) *appsv1.Deployment {
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: ControllerName, Namespace: system}}
		d.Spec.Template.Spec.Containers = []corev1.Container{{Args: []string{"-v=0", argument}}}
		d.Spec.Template.Spec.Volumes = []corev1.Volume{{Name: "other"}, {VolumeSource: corev1.VolumeSource{
			Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{{
				ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: path, Audience: "https://east"},
			}}},
		}}}
		return d
	}
	const argument = "--member=east=/etc/clusterset-dns/members/east"
	for name, test := range map[string]struct {
		objects []runtime.Object
		want    string
	}{
		"the chart":                  {[]runtime.Object{deployment(argument, "east")}, "https://east"},
		"a token for another":        {[]runtime.Object{deployment(argument, "north")}, ""},
		"a member of another":        {[]runtime.Object{deployment("--member=east2=/a", "east")}, ""},
		"no Deployment of this name": {nil, ""},
	} {
		if got := projected(t.Context(), between(nil, test.objects)); got != test.want {
			t.Errorf("%s: got %q", name, got)
		}
	}
}

// TestRevokeAccounts deletes no account but those of readers.
func TestRevokeAccounts(t *testing.T) {
	for reader, want := range map[string]int{"west": 1, "": 2, "lost": 0} {
		var objects []runtime.Object
		for name, id := range map[string]string{
			"clusterset-member-west": "west", "clusterset-member-north": "north", "clusterset-controller": "west",
			"clusterset-member": "",
		} {
			account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: system}}
			if id != "" {
				account.Labels = map[string]string{rotation.ReaderLabel: id}
			}
			objects = append(objects, account)
		}
		c := between(objects, nil).source
		count, err := revokeAccounts(t.Context(), c, reader, nil)
		left, listErr := c.Kube.CoreV1().ServiceAccounts(system).List(t.Context(), metav1.ListOptions{})
		if err != nil || listErr != nil || count != want || len(left.Items) != 4-want {
			t.Errorf("of %q: %d deleted, %d left, %v, %v", reader, count, len(left.Items), err, listErr)
		}
	}
}
