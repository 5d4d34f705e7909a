// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/ptr"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
	"github.com/clusterset-dns/clusterset-dns/controller/state"
)

const system = "clusterset-dns"

// joined is a cluster that has credentials of members, and issued credentials to them.
func joined(id string, members ...string) *cluster.Cluster {
	client := fake.NewClientset(
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem, UID: types.UID("uid-of-" + id)}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: system}},
		&coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: cluster.HeartbeatLease},
			Spec:       coordinationv1.LeaseSpec{HolderIdentity: ptr.To(id)},
		},
	)
	for _, other := range members {
		made := func(name, label string) metav1.ObjectMeta {
			return metav1.ObjectMeta{Namespace: system, Name: name, Labels: map[string]string{label: other}}
		}
		if err := errors.Join(client.Tracker().Add(&corev1.Secret{ObjectMeta: made("member-"+other, cluster.ClusterLabel)}),
			client.Tracker().Add(&corev1.ServiceAccount{ObjectMeta: made(cluster.Account(other), cluster.ReaderLabel)}),
			client.Tracker().Add(&corev1.ServiceAccount{ObjectMeta: made("no-reader-"+other, cluster.ReaderLabel)})); err != nil {
			panic(err)
		}
	}
	return &cluster.Cluster{Context: "admin@" + id, Namespace: system, Controller: id, Kube: client}
}

// memberLease is the Lease with which the controller shows a member that an object made.
func memberLease(id, origin string) *coordinationv1.Lease {
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
		Namespace: system, Name: cluster.MemberLease + id, Labels: map[string]string{cluster.ClusterLabel: id},
		Annotations: map[string]string{cluster.OriginAnnotation: origin},
	}}
}

// controllers answer at the ids of their clusters.
type controllers func(id string) state.Cluster

func (c controllers) RoundTrip(request *http.Request) (*http.Response, error) {
	is := c(request.URL.Host)
	is.Version = state.Version
	text, err := json.Marshal(is)
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(bytes.NewReader(text)), Request: request}, err
}

// answer makes the controllers of all clusters answer until the test ends.
func answer(t *testing.T, with controllers) {
	t.Helper()
	was := http.DefaultTransport
	http.DefaultTransport = with
	t.Cleanup(func() { http.DefaultTransport = was })
}

// quiet returns options for clusters, without output.
func quiet(timeout time.Duration, clusters ...*cluster.Cluster) Options {
	return Options{Clusters: clusters, Teller: cluster.Teller{Out: io.Discard, Results: io.Discard, Timeout: timeout}}
}

// TestLeave removes a cluster from the selected clusters, and names the others that may have it. It deletes the account of each
// reader whose Secret it deletes on the other side, and no other.
func TestLeave(t *testing.T) {
	for name, test := range map[string]struct {
		target   string
		contexts []string
		left     string // the Secrets that are left in the selected clusters, and the accounts of readers
		names    string
	}{
		"all":                      {"west", []string{"east", "west", "north"}, "north east", ""},
		"by the name of a context": {"admin@west", []string{"east", "west"}, "north west east north", "ERROR admin@west: no selected cluster and no member"},
		"a forgotten one":          {"west", []string{"east", "west"}, "north", "ERROR not selected, and unchanged: north: to remove west there, too,"},
		"a lost one":               {"west", []string{"east", "north"}, "north east", "Not selected, and unchanged: west. To revoke"},
		"one cluster":              {"north", []string{"east"}, "west", "ERROR not selected, and unchanged: north, west: to remove north"},
	} {
		set := map[string]*cluster.Cluster{
			"east": joined("east", "north", "west"), "west": joined("west", "east", "north"), "north": joined("north", "east", "west"),
		}
		if slices.Contains(test.contexts, "west") {
			set["east"].Context = "west" // contexts do not count
		}
		var said bytes.Buffer
		o := Options{Teller: cluster.Teller{Out: &said, Results: io.Discard, Timeout: time.Minute}}
		for _, id := range test.contexts {
			o.Clusters = append(o.Clusters, set[id])
		}
		if err := Leave(t.Context(), o, test.target); err != nil {
			said.WriteString("ERROR " + err.Error())
		}
		var left []string
		for _, c := range o.Clusters {
			secrets, err := c.Credentials(t.Context(), "")
			must(t, err)
			accounts, err := c.Kube.CoreV1().ServiceAccounts(system).List(t.Context(), metav1.ListOptions{})
			must(t, err)
			var names, want []string
			for i := range accounts.Items {
				names = append(names, accounts.Items[i].Name)
			}
			for i := range secrets {
				left = append(left, secrets[i].Labels[cluster.ClusterLabel])
				want = append(want, cluster.Account(left[len(left)-1]))
			}
			if kept := len(names) - 2; kept < 0 || !slices.Equal(names[:kept], want) || !strings.HasPrefix(names[kept], "no-reader-") {
				t.Errorf("%s: %s has the accounts %q", name, c.Context, names)
			}
		}
		if got := strings.Join(left, " "); got != test.left || !strings.Contains(said.String(), test.names) ||
			test.names == "" && said.Len() > 0 {
			t.Errorf("%s: the Secrets of %s are left; it says %q", name, got, said.String())
		}
	}
}

// TestLeaveGoesOn after an interrupt: all Secrets are deleted, but not all imported objects. It changes nothing, and does not
// wait, if west stays a member because of an inventory.
func TestLeaveGoesOn(t *testing.T) {
	const nothing = "nothing was changed: context admin@east: west is a member by "
	for _, test := range []struct {
		origin, id string
		members    []string // with Secrets
		want       string
	}{
		{"- Secret clusterset-dns/west", "west", nil, "timed out after 1m0s: waiting for the controller of east to delete 0 EndpointSlices and 1 Leases"},
		{"clusterprofile:fleet ClusterProfile fleet/west", "east", []string{"west"}, nothing + "clusterprofile:fleet"},
		{
			"clusterprofile:fleet ClusterProfile fleet/west", "west",
			[]string{"north", "west"},
			nothing + "clusterprofile:fleet ClusterProfile fleet/west: change that first",
		},
	} {
		east := joined("east", test.members...)
		must(t, east.Kube.(*fake.Clientset).Tracker().Add(memberLease("west", test.origin)))
		synctest.Test(t, func(t *testing.T) {
			if err := Leave(t.Context(), quiet(time.Minute, east), test.id); err == nil || !strings.HasPrefix(err.Error(), test.want) {
				t.Errorf("%q: got %v, want %s", test.origin, err, test.want)
			}
		})
		if secrets, err := east.Credentials(t.Context(), ""); err != nil || len(secrets) != len(test.members) {
			t.Errorf("%q: %d Secrets are left, %v", test.origin, len(secrets), err)
		}
	}
}

// TestClusterThatNobodyKnows is an error that names the cluster, even if the name is no valid id.
func TestClusterThatNobodyKnows(t *testing.T) {
	o := quiet(time.Minute, joined("east", "west"))
	for _, name := range []string{"nobody", "no@body"} {
		for _, err := range []error{Leave(t.Context(), o, name), Drain(t.Context(), o, name, true)} {
			if err == nil || !strings.HasPrefix(err.Error(), name+": ") {
				t.Errorf("got %v", err)
			}
		}
	}
}

// TestDrain: a cluster that is selected says itself that it is drained; otherwise the Secrets of the others say so. Undrain
// reverts both.
func TestDrain(t *testing.T) {
	east, west := joined("east", "west"), joined("west", "east")
	for _, test := range []struct {
		clusters   []*cluster.Cluster
		drain      bool
		east, west string // the annotations of the Secret of west in east, and of the namespace in west
		says       string
	}{
		{[]*cluster.Cluster{east, west}, true, "", "true", "west is drained\n"},
		{[]*cluster.Cluster{east}, true, "true", "true", "east: the endpoints of west are drained\n"},
		{[]*cluster.Cluster{east, west}, false, "", "", "east: the endpoints of west are not drained\nwest is not drained\n"},
	} {
		var said bytes.Buffer
		o := quiet(time.Minute, test.clusters...)
		o.Teller.Results = &said
		answer(t, func(string) state.Cluster {
			return state.Cluster{Members: []state.Member{{Cluster: "west", Drained: test.drain}}}
		})
		if err := Drain(t.Context(), o, "west", test.drain); err != nil || said.String() != test.says {
			t.Errorf("%v; it says %q, want %q", err, said.String(), test.says)
		}
		secret, err := east.Kube.CoreV1().Secrets(system).Get(t.Context(), "member-west", metav1.GetOptions{})
		namespace, failed := west.Kube.CoreV1().Namespaces().Get(t.Context(), system, metav1.GetOptions{})
		if err = errors.Join(err, failed); err != nil || secret.Annotations[cluster.DrainAnnotation] != test.east ||
			namespace.Annotations[cluster.DrainAnnotation] != test.west {
			t.Errorf("after %q: east has %v, west %v, %v", test.says, secret.Annotations, namespace.Annotations, err)
		}
	}
}

// TestDrainThatNobodySees fails after the timeout, and names the controllers that have not seen it. One is in a cluster that
// has no Secret to annotate. The user annotates what else makes west a member, whose name Drain has from the controller.
func TestDrainThatNobodySees(t *testing.T) {
	answer(t, func(id string) state.Cluster {
		if id == "west" {
			return state.Cluster{Cluster: id}
		}
		west := state.Member{Cluster: "west", Drained: id == "east", Credential: "ClusterProfile fleet/west"}
		return state.Cluster{Cluster: id, Members: []state.Member{west}}
	})
	silent, east := joined("west"), joined("east")
	silent.Controller = ""
	must(t, east.Kube.(*fake.Clientset).Tracker().Add(memberLease("west", "clusterprofile:fleet ClusterProfile fleet/west")))
	const by = ", by its heartbeat or the annotation clusterset-dns.github.io/drain of ClusterProfile fleet/west: see"
	for want, test := range map[string]struct {
		drain    bool
		clusters []*cluster.Cluster
	}{
		"waiting for the controller of west to see that west is drained":            {true, []*cluster.Cluster{joined("west")}},
		"context admin@west: no pod of clusterset-controller runs":                  {true, []*cluster.Cluster{silent}},
		": waiting for the controller of north to see that west is drained" + by:    {true, []*cluster.Cluster{joined("east", "west"), joined("north")}},
		": waiting for the controller of east to see that west is not drained" + by: {false, []*cluster.Cluster{east}},
	} {
		synctest.Test(t, func(t *testing.T) {
			err := Drain(t.Context(), quiet(time.Minute, test.clusters...), "west", test.drain)
			if !errors.Is(err, cluster.ErrTimeout) || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %s", err, want)
			}
		})
	}
}

// must ends the test if there is an error.
func must(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}
