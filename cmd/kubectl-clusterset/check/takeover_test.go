// SPDX-License-Identifier: Apache-2.0

package check

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/accept"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
)

func TestTakeOver(t *testing.T) {
	limit := func(c *Cluster, patterns string) {
		c.Members[0].Secret.Annotations = map[string]string{accept.Annotation: patterns}
	}
	publishes := func(c *Cluster, accepts string) {
		c.Heartbeat.Annotations = map[string]string{accept.PublishedAnnotation: accepts}
	}
	for name, test := range map[string]struct {
		change func(east *Cluster)
		want   string // the members and names
	}{
		"equal ranks":         {func(*Cluster) {}, "west: shop/db, shop/web, team/x"},
		"a rank after ours":   {func(east *Cluster) { east.Members[0].Rank = 1 }, ""},
		"a rank before ours":  {func(east *Cluster) { east.Members[0].Rank = -1 }, "west: shop/db, shop/web, team/x"},
		"limited":             {func(east *Cluster) { limit(east, "shop/w*") }, "west: shop/web"},
		"nothing is accepted": {func(east *Cluster) { east.Accept = []string{} }, ""},
		"the heartbeat says that nothing is accepted": {func(east *Cluster) { publishes(east, `{"*":""}`) }, ""},
		"the heartbeat says what is accepted":         {func(east *Cluster) { publishes(east, `{"*":"team"}`) }, "west: team/x"},
		"the heartbeat says what is kept": {func(east *Cluster) {
			limit(east, "a/b/c")
			publishes(east, `{"*":"*","west":"team"}`)
		}, "west: team/x"},
		"a namespace is opted in": {func(east *Cluster) {
			east.Accept = []string{}
			east.Namespaces["team"].Labels = map[string]string{accept.Label: "true"}
		}, "west: team/x"},
		"ours is last": {func(east *Cluster) {
			east.Members[0].Rank = 7
			east.Namespaces["clusterset-dns"].Annotations = map[string]string{member.RankAnnotation: "9"}
		}, "west: shop/db, shop/web, team/x"},
		"many": {func(east *Cluster) {
			for i := range 6 {
				east.Exports = append(east.Exports, v1beta1.ServiceExport{
					ObjectMeta: metav1.ObjectMeta{Namespace: "many", Name: fmt.Sprint("s", i)},
				})
			}
		}, "west: many/s0, many/s1, many/s2, many/s3, many/s4 and 4 more"},
	} {
		set := newSet(func(east, _ *Cluster) {
			for _, namespace := range []string{"shop", "team", "many"} {
				east.Namespaces[namespace] = &corev1.Namespace{}
			}
			for _, each := range []metav1.ObjectMeta{
				{Namespace: "shop", Name: "web"}, {Namespace: "shop", Name: "db"}, {Namespace: "team", Name: "x"},
			} {
				east.Exports = append(east.Exports, v1beta1.ServiceExport{ObjectMeta: each})
			}
			test.change(east)
		})
		note := takeOver.note(set, set.Clusters[0])
		got := strings.TrimPrefix(note, "These members could take over names: ")
		got, _, _ = strings.Cut(got, ". Annotations ")
		if got != test.want {
			t.Errorf("%s: got %q, want %q", name, note, test.want)
		}
		if other := takeOver.note(set, set.Clusters[1]); other != "" {
			t.Errorf("%s: a cluster without exports: %q", name, other)
		}
	}
	set := newSet(func(east, _ *Cluster) { east.SecretsUnseen = errors.New("forbidden") })
	if takeOver.skips(set, set.Clusters[0]) == "" || takeOver.skips(set, set.Clusters[1]) != "" {
		t.Error("it depends on the Secrets")
	}
}
