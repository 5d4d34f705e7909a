// SPDX-License-Identifier: Apache-2.0

package kubectl

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
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

// joinArgs join all clusters, over ways that can be cut.
func (b *bed) joinArgs(more ...string) []string {
	args := []string{"join", "east", "west", "north"}
	for _, c := range b.all() {
		args = append(args, "--server", c.Name()+"="+c.way.URL())
	}
	return append(args, more...)
}

// testDryRun says all and writes nothing.
func testDryRun(t *testing.T, b *bed) {
	eventually(t, "heartbeats", func() error {
		for _, c := range b.all() {
			if _, err := c.Client().CoordinationV1().Leases(system).Get(t.Context(), member.HeartbeatLease,
				metav1.GetOptions{}); err != nil {
				return err
			}
		}
		return nil
	})
	// All clusters are on this machine.
	if told := b.check(t, "--pre"); !slices.Equal(texts(told), []string{
		"server-address east", "server-address north", "server-address west",
	}) {
		t.Errorf("before the installation: %+v", told)
	}
	golden(t, "join-dry-run", b.do(t, b.joinArgs("--dry-run")...))
	for _, c := range b.all() {
		if secrets := b.secrets(t, c); len(secrets) > 0 {
			t.Errorf("%s: %v", c.Name(), secrets)
		}
	}
	if got := b.run(t, "join", "east", "nowhere"); got.status != 2 || !strings.Contains(got.err, "nowhere") {
		t.Errorf("a context that there is not: %+v", got)
	}
}

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

func testJoin(t *testing.T, b *bed) {
	out := b.do(t, b.joinArgs()...)
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
	if out := b.do(t, "version", "--contexts", "east,west"); strings.Count(out, "\n") != 3 ||
		strings.Contains(out, "unknown: ") {
		t.Errorf("the versions: %s", out)
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

// testRotate joins again: the new credentials work, the old ones do until they
// end; the addresses and what an administrator wrote on the Secret stay.
func testRotate(t *testing.T, b *bed) {
	before := b.credential(t, b.west, b.east)
	b.shell(t, "kubectl --context west -n "+system+" annotate secret member-east example.org/kept=yes")
	out := b.do(t, "join", "east", "west", "north", "--server", "west="+b.west.way.URL(), "--server",
		"north="+b.north.way.URL())
	after := b.credential(t, b.west, b.east)
	if after.Host != before.Host || before.Host != b.east.way.URL() ||
		!strings.Contains(out, "west keeps reading east at "+before.Host) {
		t.Errorf("west read east at %s, and reads it at %s now:\n%s", before.Host, after.Host, out)
	}
	if after.BearerToken == before.BearerToken {
		t.Error("west reads east by the token that it had")
	}
	for _, config := range []*rest.Config{before, after} {
		client, err := kubernetes.NewForConfig(config)
		must(t, err)
		_, err = client.DiscoveryV1().EndpointSlices("").List(t.Context(), metav1.ListOptions{Limit: 1})
		must(t, err)
	}
	if kept := b.shell(t,
		"kubectl --context west -n "+system+
			" get secret member-east -o jsonpath='{.metadata.annotations.example\\.org/kept}'"); kept != "yes" {
		t.Errorf("the annotation is %q now", kept)
	}
}

// testSysdump reads all that is there, and writes no token into the archive.
func testSysdump(t *testing.T, b *bed) {
	file := filepath.Join(t.TempDir(), "dump.tar.gz")
	b.do(t, "sysdump", "-o", file, "--contexts", "east,west,north")
	names, text := b.shell(t, "tar -tzf "+file), b.shell(t, "tar -xzOf "+file)
	for _, want := range []string{"status.txt", "east/nodes.yaml", "west/leases.yaml"} {
		if !strings.Contains(names, "dump/"+want+"\n") {
			t.Errorf("no %s in\n%s", want, names)
		}
	}
	// Nobody runs the pods of CoreDNS, so that they have no logs.
	if errors := b.shell(t, "tar -xzOf "+file+" --wildcards 'dump/*/errors.txt' | grep -v '^log of ' || true"); errors != "" {
		t.Errorf("errors:\n%s", errors)
	}
	for _, c := range b.all() {
		for _, other := range b.all() {
			if c != other && strings.Contains(text, b.credential(t, c, other).BearerToken) {
				t.Errorf("the token by which %s reads %s is in the archive", c.Name(), other.Name())
			}
		}
	}
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
