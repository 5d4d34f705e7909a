// SPDX-License-Identifier: Apache-2.0

package kubectl

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	mcs "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/member"
)

// secrets are those that join made in a cluster.
func (b *bed) secrets(t testing.TB, c *cluster) []string {
	t.Helper()
	list, err := c.Client().CoreV1().Secrets(system).List(t.Context(), metav1.ListOptions{})
	must(t, err)
	var names []string
	for _, secret := range list.Items {
		names = append(names, secret.Name)
	}
	return names
}

// testJoin joins all clusters. Their tokens live for as long as their API servers let them.
func testJoin(t *testing.T, b *bed) {
	args := []string{"join", "east", "west", "north"}
	for _, c := range b.all() { // over ways that can be cut
		args = append(args, "--server", c.Name()+"="+c.way.URL())
	}
	out := b.do(t, args...)
	for _, want := range []string{
		"east receives heartbeats from west", "east receives heartbeats from north",
		"west receives heartbeats from east", "west receives heartbeats from north",
		"north receives heartbeats from east", "north receives heartbeats from west",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("it does not say that %s:\n%s", want, out)
		}
	}
	if !strings.Contains(out, "unless its controller renews it") {
		t.Errorf("it does not say who renews the tokens:\n%s", out)
	}
	var set struct {
		Clusters []struct {
			Cluster string
			Members []struct {
				Cluster, State string
				Expires        *metav1.Time
				Synced         bool
			}
		}
	}
	must(t, json.Unmarshal([]byte(b.do(t, "status", "--wait", "--contexts", "east,west,north", "-o", "json")), &set))
	for _, c := range set.Clusters {
		if len(c.Members) != 2 {
			t.Errorf("%s has %d members", c.Cluster, len(c.Members))
		}
		for _, m := range c.Members {
			if m.State != "fresh" || !m.Synced || m.Expires == nil {
				t.Errorf("%s of %s: %+v", m.Cluster, c.Cluster, m)
				continue
			}
			days := 30 * 24 * time.Hour
			if m.Cluster == "north" {
				days = time.Hour
			}
			if left := time.Until(m.Expires.Time); left > days || left < days-10*time.Minute {
				t.Errorf("the credential of %s in %s lasts %s", m.Cluster, c.Cluster, left)
			}
		}
	}
}

// credential is the kubeconfig by which a cluster reads another.
func (b *bed) credential(t testing.TB, reader, of *cluster) *rest.Config {
	t.Helper()
	secret, err := reader.Client().CoreV1().Secrets(system).Get(t.Context(), "member-"+of.Name(), metav1.GetOptions{})
	must(t, err)
	config, err := clientcmd.RESTConfigFromKubeConfig(secret.Data[member.KubeconfigKey])
	must(t, err)
	return config
}

// testLeave takes the set apart; nothing of ours remains.
func testLeave(t *testing.T, b *bed) {
	old, err := kubernetes.NewForConfig(b.credential(t, b.east, b.west))
	must(t, err)
	if got := b.run(t, "leave", "nobody", "--contexts", "east,west"); got.status != 1 ||
		!strings.Contains(got.err, "nobody") {
		t.Errorf("leave of a cluster that nobody knows: %+v", got)
	}
	b.do(t, "leave", "west", "--contexts", "east,west,north", "--dry-run")
	must(t, func() error {
		_, err := old.DiscoveryV1().EndpointSlices("").List(t.Context(), metav1.ListOptions{Limit: 1})
		return err
	}())
	b.do(t, "leave", "west", "--contexts", "east,west,north")
	eventually(t, "the credential to end", func() error {
		if _, err := old.DiscoveryV1().EndpointSlices("").List(t.Context(),
			metav1.ListOptions{Limit: 1}); !apierrors.IsUnauthorized(err) {
			return fmt.Errorf("got %q", fmt.Sprint(err))
		}
		return nil
	})
	if out := b.do(t, "status", "--contexts", "east"); strings.Contains(out, "west") ||
		!strings.Contains(out, "north") {
		t.Errorf("east still has west, or has lost north:\n%s", out)
	}
	b.do(t, "leave", "north", "--contexts", "east,north")
	for _, c := range b.all() {
		if names := b.secrets(t, c); len(names) > 0 {
			t.Errorf("%s still has the Secrets %v", c.Name(), names)
		}
		leases, err := c.Client().CoordinationV1().Leases(system).List(t.Context(),
			metav1.ListOptions{LabelSelector: member.ClusterLabel})
		must(t, err)
		slices, err := c.Client().DiscoveryV1().EndpointSlices("").List(t.Context(), metav1.ListOptions{
			LabelSelector: mcs.LabelSourceCluster + "," + mcs.LabelSourceCluster + "!=" + c.Name(),
		})
		must(t, err)
		if len(leases.Items)+len(slices.Items) > 0 {
			t.Errorf("%s still has %d Leases and %d slices", c.Name(), len(leases.Items), len(slices.Items))
		}
	}
}
