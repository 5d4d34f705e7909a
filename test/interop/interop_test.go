// SPDX-License-Identifier: Apache-2.0

// Package interop queries CoreDNS, with the plugin multicluster and with its stock plugin, for the objects of
// implementations of the Multi-Cluster Services API.
package interop

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/controlplanetest"
)

func TestMain(m *testing.M) { controlplanetest.Main(m) }

// systems are the folders here: the specification, and implementations in the order of the document.
var systems = []string{
	"specification", "mcs-api", "cilium", "submariner", "karmada", "aws-cloud-map", "gke", "antrea", "ack-one", "azure-fleet", "linkerd",
}

const sentinel = "apiVersion: multicluster.x-k8s.io/v1beta1\nkind: ServiceImport\nmetadata: {name: last, namespace: default}\n" +
	"spec: {type: ClusterSetIP, ips: [10.43.255.1], ports: [{name: http, port: 80}]}\n"

// TestInterop queries the names in SYSTEM/answers.txt with the objects that an implementation writes into an importing
// cluster. These files have the lines:
//
//	corefile: OPTION                                   from here on, our plugin has this option
//	COLUMN | NAME.NAMESPACE TYPE | OURS | STOCK | NOTE  a query; names lack .svc.clusterset.local., SRV priority and weight
//	delete: RESOURCE.VERSION.GROUP NAMESPACE/NAME...    objects to delete
//
// OURS has the answer of our plugin; in STOCK, = means the same answer. docs/interop.md explains the differences.
//
// One cluster has the objects of the specification and of all implementations. Our CoreDNS and the stock one run next
// to it.
func TestInterop(t *testing.T) {
	plane := controlplanetest.Start(t, controlplane.Options{
		Name:         "interop",
		PodCIDRs:     []netip.Prefix{netip.MustParsePrefix("10.44.0.0/16"), netip.MustParsePrefix("fd00:44::/48")},
		ServiceCIDRs: []netip.Prefix{netip.MustParsePrefix("10.43.0.0/16"), netip.MustParsePrefix("fd00:43::/112")},
	})[0]
	stock := serve(t, plane, "kubernetes", "multicluster clusterset.local")
	// The API of GKE does not exist yet, which must not affect the other group.
	early := serve(t, plane, "multicluster", "groups multicluster.x-k8s.io net.gke.io")
	apply(t, plane, "gke/crd.yaml")
	for _, system := range systems {
		apply(t, plane, system+"/objects.yaml")
	}
	must(t, plane.Apply(t.Context(), []byte(sentinel)))
	early.until(t, "last.default A", "10.43.255.1")
	early.until(t, "web.gke A", "10.43.6.1") // no restart is needed once it exists

	stock.until(t, "last.default A", "10.43.255.1")
	ours := map[string]server{}
	for _, system := range systems {
		text, err := os.ReadFile(filepath.Join(system, "answers.txt"))
		must(t, err)
		option := ""
		for line := range strings.Lines(string(text)) {
			line = strings.TrimSpace(line)
			other, configures := strings.CutPrefix(line, "corefile: ")
			if configures {
				option = other
			}
			if ours[option] == "" {
				ours[option] = serve(t, plane, "multicluster", option)
				ours[option].until(t, "last.default A", "10.43.255.1")
			}
			objects, deletes := strings.CutPrefix(line, "delete: ")
			if deletes {
				remove(t, plane, strings.Fields(objects))
			}
			if configures || deletes {
				continue
			}
			cells := strings.Split(line, "|")
			if len(cells) != 5 {
				t.Fatalf("%s: a line has %d cells, want 5: %s", system, len(cells), line)
			}
			question, answer, stocks := strings.TrimSpace(cells[1]), strings.TrimSpace(cells[2]), strings.TrimSpace(cells[3])
			if stocks == "=" {
				stocks = answer
			}
			t.Run(system+"/"+question, func(t *testing.T) {
				ours[option].until(t, question, answer)
				stock.until(t, question, stocks)
			})
		}
	}
}

// A server is the address of a CoreDNS.
type server string

// serve starts a CoreDNS next to a cluster, with a plugin and one of its options, until the test ends.
func serve(t *testing.T, plane *controlplane.Cluster, plugin, option string) server {
	return server(controlplanetest.RunCoreDNS(t, plane.Cluster, fmt.Sprintf(`clusterset.local:PORT {
    bind 127.0.0.1
    %s clusterset.local {
        kubeconfig %s
        %s
    }
}
`, plugin, plane.AdminKubeconfig(), option)))
}

// until waits for an answer to a query of the form "NAME.NAMESPACE TYPE".
func (s server) until(t *testing.T, question, want string) {
	name, kind, _ := strings.Cut(question, " ")
	controlplanetest.Eventually(t, "an answer", func(ctx context.Context) error {
		answer, err := cluster.DNSAt(string(s)).Ask(ctx, name+".svc.clusterset.local.", kind)
		got := strings.ReplaceAll(priorityAndWeight.ReplaceAllString(answer.Text(), "$1"), ".svc.clusterset.local.", "")
		switch {
		case err != nil: // the stock server fails to pack a name with an empty label
			got = "no reply"
		case got == "no records":
			got = "NODATA"
		}
		if got != want {
			return errors.Join(err, fmt.Errorf("%s is answered with %s, want %s", question, got, want))
		}
		return nil
	})
}

// priorityAndWeight matches the beginning of an SRV record's data, which the specification leaves open.
var priorityAndWeight = regexp.MustCompile(`\b0 \d+ (\d+ [a-z0-9-]+\.)`)

var must = controlplanetest.Must

func apply(t *testing.T, plane *controlplane.Cluster, path string) {
	text, err := os.ReadFile(path)
	must(t, err)
	must(t, plane.Apply(t.Context(), text)) // an error names the object
}

// remove deletes objects: a resource with its version and group, and NAMESPACE/NAME of each object.
func remove(t *testing.T, plane *controlplane.Cluster, words []string) {
	resource, _ := schema.ParseResourceArg(words[0])
	for _, object := range words[1:] {
		namespace, name, _ := strings.Cut(object, "/")
		must(t, plane.Dynamic().Resource(*resource).Namespace(namespace).Delete(t.Context(), name, metav1.DeleteOptions{}))
	}
}
