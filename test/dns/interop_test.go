// SPDX-License-Identifier: Apache-2.0

package dns

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterset-dns/clusterset-dns/test/clusterset"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/controlplanetest"
)

// systems are the folders of ../interop: what the specification says, and others in the order of the document.
var systems = []string{
	"specification", "mcs-api", "cilium", "submariner", "karmada", "aws-cloud-map", "gke", "antrea", "ack-one", "azure-fleet", "linkerd",
}

const sentinel = "apiVersion: multicluster.x-k8s.io/v1beta1\nkind: ServiceImport\nmetadata: {name: last, namespace: default}\n" +
	"spec: {type: ClusterSetIP, ips: [10.43.255.1], ports: [{name: http, port: 80}]}\n"

// TestInterop has what the specification is about, and what all other implementations write, in one cluster, and CoreDNS of
// ours and the stock one beside it.
func TestInterop(t *testing.T) {
	plane := controlplanetest.Start(t, controlplane.Options{
		Name: "interop", Zones: []string{}, IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol},
		PodCIDRs:     []netip.Prefix{netip.MustParsePrefix("10.44.0.0/16"), netip.MustParsePrefix("fd00:44::/48")},
		ServiceCIDRs: []netip.Prefix{netip.MustParsePrefix("10.43.0.0/16"), netip.MustParsePrefix("fd00:43::/112")},
	})[0]
	config := admin(t, plane)
	// The stock plugin is first: it sets the logger of client-go, which no other part may use at that time.
	stock := serve(t, corefile("kubernetes", config, "multicluster clusterset.local"))
	// The API of GKE is not there yet, and harms nothing.
	early := serve(t, corefile("multicluster", config, "groups multicluster.x-k8s.io net.gke.io"))
	apply(t, plane, "gke/crd.yaml")
	for _, system := range systems {
		apply(t, plane, system+"/objects.yaml")
	}
	must(t, clusterset.Apply(t.Context(), plane, []byte(sentinel)))
	early.until("last.default.svc.clusterset.local.", "10.43.255.1")
	early.until("web.gke.svc.clusterset.local.", "10.43.6.1") // once it is, nothing has to be told

	stock.until("last.default.svc.clusterset.local.", "10.43.255.1")
	ours := map[string]*server{}
	for _, system := range systems {
		f := readAnswers(t, system)
		for _, l := range f.lines {
			if _, ok := ours[l.option]; !ok {
				ours[l.option] = serve(t, corefile("multicluster", config, l.option))
				ours[l.option].until("last.default.svc.clusterset.local.", "10.43.255.1")
			}
		}
		t.Run(system, func(t *testing.T) {
			for i := range f.lines {
				f.lines[i].run(t, plane, ours[f.lines[i].option], stock)
			}
		})
		f.update(t)
	}
}

// corefile has a plugin with options: ours, or CoreDNS's own.
func corefile(plugin, config, options string) string {
	return fmt.Sprintf(`clusterset.local:0 {
		bind 127.0.0.1
		%s clusterset.local {
			kubeconfig %s
			%s
		}
	}`, plugin, config, options)
}

func apply(t *testing.T, plane *controlplane.Cluster, path string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "interop", filepath.FromSlash(path)))
	must(t, err)
	if err := clusterset.Apply(t.Context(), plane, text); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

// run does what the line says: deletes objects, or asks both servers.
func (l *answersLine) run(t *testing.T, plane *controlplane.Cluster, ours, stock *server) {
	if l.delete != nil {
		for _, object := range l.delete[1:] {
			namespace, name, _ := strings.Cut(object, "/")
			err := plane.Dynamic().Resource(deletable[l.delete[0]]).Namespace(namespace).Delete(t.Context(), name,
				metav1.DeleteOptions{})
			if err != nil {
				t.Fatalf("%s %s: %v", l.delete[0], object, err)
			}
		}
		return
	}
	if l.question == "" {
		return
	}
	t.Run(l.question, func(t *testing.T) {
		for server, want := range map[*server]*string{ours: &l.ours, stock: &l.stock} {
			limit := soon
			if *rewrite {
				limit = 3 * time.Second
			}
			var got string
			for deadline := time.Now().Add(limit); ; <-time.After(20 * time.Millisecond) {
				if got = server.short(l.question); got == *want || time.Now().After(deadline) {
					break
				}
			}
			if got != *want && !*rewrite {
				t.Errorf("%s is answered with %s, want %s", l.question, got, *want)
			}
			*want = got
		}
	})
}

var deletable = map[string]schema.GroupVersionResource{
	"serviceimports":               {Group: "multicluster.x-k8s.io", Version: "v1beta1", Resource: "serviceimports"},
	"serviceimports.v1.net.gke.io": {Group: "net.gke.io", Version: "v1", Resource: "serviceimports"},
	"endpointslices":               {Group: "discovery.k8s.io", Version: "v1", Resource: "endpointslices"},
}

// short is the answer to a question in the form of the files.
func (s *server) short(question string) string {
	s.Helper()
	name, kind, _ := strings.Cut(question, " ")
	answer, err := s.query(name+".svc.clusterset.local.", dns.StringToType[kind])
	if err != nil {
		return "no reply" // where a name has an empty label, the stock server cannot pack it
	}
	return strings.ReplaceAll(priorityAndWeight.ReplaceAllString(answer, "$1"), ".svc.clusterset.local.", "")
}

// priorityAndWeight begin the data of an SRV record. The specification leaves them open.
var priorityAndWeight = regexp.MustCompile(`\b0 \d+ (\d+ [a-z0-9-]+\.)`)
