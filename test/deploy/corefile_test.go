// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/miekg/dns"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
	"github.com/clusterset-dns/clusterset-dns/test/audit"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/controlplanetest"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/process"
)

// questions are the queries for each example: a name and a type, and the sorted data of the answers, or a description.
// AXFR counts records. WEB, OWN and KUBERNETES stand for addresses.
var questions = map[string][][2]string{
	"README.md 1": {
		{"web.shop.svc.clusterset.local. A", "WEB"},
		{"own.shop.svc.cluster.local. A", "OWN"},
	},
	"README.md 2": {
		{"web.shop.svc.clusterset.local. A", "WEB"},
		{"own.shop.svc.cluster.local. A", "OWN"},
		{"elsewhere.example.org. A", "192.0.2.80"},
	},
	"install.md": {
		{"web.shop.svc.clusterset.local. A", "WEB"},
	},
	"minimal.Corefile": {
		{"web.shop.svc.clusterset.local. A", "WEB"},
		{"nothing.shop.svc.clusterset.local. A", "NXDOMAIN"},
	},
	"kubeadm.Corefile": {
		{"web.shop.svc.clusterset.local. A", "WEB"},
		{"own.shop.svc.cluster.local. A", "OWN"},
		{"web.shop.svc.cluster.local. A", "NXDOMAIN"},
		{"kubernetes.default.svc.cluster.local. A", "KUBERNETES"},
		{"elsewhere.example.org. A", "192.0.2.80"},
	},
	"cache.Corefile": {
		{"web.shop.svc.clusterset.local. A", "WEB"},
		{"web.shop.svc.clusterset.local. A", "WEB"}, // from the cache
		{"_sql._tcp.db.shop.svc.clusterset.local. SRV", "20 records"},
	},
	"zone.Corefile": {
		{"web.shop.svc.services.example.org. A", "WEB"},
		{"web.shop.svc.clusterset.local. A", "WEB"},
		{"db-1.east.db.shop.svc.services.example.org. A", "10.1.0.1"},
	},
	"pod-names.Corefile": {
		{"db-1.db.shop.svc.east.clusterset.local. A", "10.1.0.1"},
		{"db-1.db.shop.svc.west.clusterset.local. A", "NXDOMAIN"},
		{"db-1.east.db.shop.svc.clusterset.local. A", "10.1.0.1"},
	},
	"migration.Corefile": {
		{"own.shop.svc.cluster.local. A", "OWN"},
		{"web.shop.svc.cluster.local. A", "WEB"},
		{"web.shop.svc.clusterset.local. A", "WEB"},
		{"db-1.east.db.shop.svc.cluster.local. A", "10.1.0.1"},
		{"own.shop.svc.clusterset.local. A", "NXDOMAIN"},
		{"nothing.shop.svc.cluster.local. A", "NXDOMAIN"},
	},
	"rewrite.Corefile": {
		{"db.shop.svc.cluster.local. A", "20 records"},
		{"db.shop.svc.clusterset.local. A", "20 records"},
		{"own.shop.svc.cluster.local. A", "OWN"},
	},
	"outside.Corefile": {
		{"web.shop.svc.clusterset.local. A", "WEB"},
		{"db.shop.svc.clusterset.local. A", "NXDOMAIN"}, // its tier is not served here
		{"hidden.back.svc.clusterset.local. A", "NXDOMAIN"},
	},
	"large.Corefile": {
		{"db.shop.svc.clusterset.local. A", "16 records"},
		{"db.shop.svc.clusterset.local. AXFR", "transferred"},
	},
	"locality.Corefile": {
		{"db.shop.svc.clusterset.local. A", "20 records"}, // all in the local cluster
	},
	"transfer.Corefile": {
		{"web.shop.svc.clusterset.local. AXFR", "transferred"},
	},
}

// TestExamples starts each example, the examples in the plugin's README, and the server block for NodeLocal DNSCache as a
// CoreDNS with the rights from deploy/ on a real API server, and queries it.
func TestExamples(t *testing.T) {
	cluster := installed(t)
	addresses := shop(t, cluster)
	credential, err := cluster.ServiceAccountKubeconfig(t.Context(), "kube-system", "clusterset-coredns")
	must(t, err)
	// The examples name this context or none.
	path := filepath.Join(t.TempDir(), "kubeconfig")
	must(t, os.WriteFile(path, []byte(strings.ReplaceAll(string(credential), cluster.Name(), "east")), 0o600))
	// The cluster's DNS, and all external names, which resolve to 192.0.2.80.
	upstream := controlplanetest.RunCoreDNS(t, cluster.Cluster, `.:PORT {
 bind 127.0.0.1
 template IN A {
  answer "{{ .Name }} 60 IN A 192.0.2.80"
 }
}
clusterset.local:PORT {
 bind 127.0.0.1
 multicluster {
  kubeconfig `+path+`
 }
}`)
	examples := map[string]string{"install.md": documented(t, "operate/install.md", "bind 169.254.20.10")}
	files, err := filepath.Glob(root + "/corefile-examples/*.Corefile")
	must(t, err)
	for _, file := range files {
		name, text := filepath.Base(file), read(t, file)
		if examples[name] = text; !strings.HasPrefix(text, "# ") {
			t.Errorf("the first line of %s does not say why", name)
		}
	}
	for i, block := range regexp.MustCompile("(?s)~~~ corefile\n(.*?)~~~").FindAllStringSubmatch(
		read(t, root+"/plugin/multicluster/README.md"), -1) {
		examples[fmt.Sprintf("README.md %d", i+1)] = strings.Replace(block[1], ". {\n", ".:53 {\n", 1)
	}
	asked := 0
	for name, text := range examples {
		t.Run(name, func(t *testing.T) {
			if questions[name] == nil {
				t.Fatal("nothing is asked: add to the questions of this test")
			}
			asked++
			server := controlplanetest.RunCoreDNS(t, cluster.Cluster, here(t, text, path, upstream))
			for _, question := range questions[name] {
				want := question[1]
				for placeholder, address := range addresses {
					want = strings.ReplaceAll(want, placeholder, address)
				}
				answers(t, server, question[0], want)
			}
		})
	}
	if asked != len(questions) {
		t.Errorf("questions for %d examples, of which %d are there", len(questions), asked)
	}
}

// TestCoreDNSUsesEveryRight compares CoreDNS's calls with the rights that the chart grants with all options.
// test/controller tests the rights of the controller and of members.
func TestCoreDNSUsesEveryRight(t *testing.T) {
	cluster := installed(t)
	log := audit.Of(t, cluster)
	rights := template(t, "--show-only", "templates/coredns-rights.yaml",
		"--set", "coredns.enabled=true,coredns.readNodes=true,coredns.readGKEImports=true")
	apply(t, cluster, rights)
	credential, err := cluster.WriteCredential(t.Context(), "kube-system", "clusterset-coredns")
	must(t, err)
	controlplanetest.RunCoreDNS(t, cluster.Cluster, strings.NewReplacer("FILE", credential, "CLUSTER", cluster.Name()).Replace(`
.:PORT {
  bind 127.0.0.1
  multicluster clusterset.local {
    kubeconfig FILE
    namespace_labels kubernetes.io/metadata.name
    groups multicluster.x-k8s.io net.gke.io
    cluster CLUSTER
    prefer zone
  }
  kubernetes cluster.local {
    kubeconfig FILE
    pods verified
    endpoint_pod_names
  }
}`))
	eventually(t, "every right is used", func(context.Context) error {
		if problems := audit.Compare(t, rights, nil, log); len(problems) > 0 {
			return fmt.Errorf("%q", problems)
		}
		return nil
	})
}

// shop creates the objects that the examples serve, and returns their addresses by placeholder.
func shop(t testing.TB, cluster *controlplane.Cluster) map[string]string {
	var endpoints strings.Builder
	for i := range 20 {
		fmt.Fprintf(&endpoints, "- {addresses: [10.1.0.%d], hostname: db-%d}\n", i, i)
	}
	text := `
apiVersion: v1
kind: Namespace
metadata: {name: shop, labels: {clusterset: "true"}}
---
apiVersion: v1
kind: Namespace
metadata: {name: back}
---
apiVersion: v1
kind: Service
metadata: {name: own, namespace: shop}
spec: {clusterIP: OWN, ports: [{port: 80}]}
---
apiVersion: multicluster.x-k8s.io/v1beta1
kind: ServiceImport
metadata: {name: web, namespace: shop, labels: {tier: frontend}}
spec: {type: ClusterSetIP, ips: [10.9.9.9], ports: [{port: 80}]}
---
apiVersion: multicluster.x-k8s.io/v1beta1
kind: ServiceImport
metadata: {name: hidden, namespace: back, labels: {tier: backend}}
spec: {type: ClusterSetIP, ips: [10.9.9.8], ports: [{port: 80}]}
---
apiVersion: multicluster.x-k8s.io/v1beta1
kind: ServiceImport
metadata: {name: db, namespace: shop}
spec: {type: Headless, ports: [{name: sql, port: 5432}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata:
  name: db-east
  namespace: shop
  labels: {multicluster.kubernetes.io/service-name: db, multicluster.kubernetes.io/source-cluster: east}
addressType: IPv4
ports: [{name: sql, port: 5432}]
endpoints:
` + endpoints.String()
	addresses := map[string]string{"WEB": "10.9.9.9", "OWN": cluster.ServiceIP(2), "KUBERNETES": cluster.ServiceIP(1)}
	apply(t, cluster, strings.Replace(text, "OWN", addresses["OWN"], 1))
	return addresses
}

var (
	kubeconfigLine = regexp.MustCompile(`(?m)^\s*kubeconfig .*\n`)
	pluginLine     = regexp.MustCompile(`(?m)^(\s*(?:multicluster|kubernetes)\b[^{\n]*?) *(\{)?\n`)
	sideLine       = regexp.MustCompile(`(?m)^(\s*)(prometheus|ready|health)\b(?: :\d+)?`)
	blockLine      = regexp.MustCompile(`(?m)^\S.*\{$`)
)

// here returns an example with the addresses, the ports and the credential of this test.
func here(t testing.TB, corefile, kubeconfig, upstream string) string {
	corefile = kubeconfigLine.ReplaceAllString(corefile, "")
	corefile = pluginLine.ReplaceAllStringFunc(corefile, func(line string) string {
		parts := pluginLine.FindStringSubmatch(line)
		block := parts[1] + " {\n kubeconfig " + kubeconfig + "\n"
		if parts[2] == "" {
			block += "}\n"
		}
		return block
	})
	corefile = sideLine.ReplaceAllString(corefile, "${1}${2} 127.0.0.1:0")
	// The plugin loop would detect a loop, because the upstream is on the same machine.
	corefile = strings.ReplaceAll(corefile, "    loop\n", "")
	second, err := process.FreePort()
	must(t, err)
	corefile = blockLine.ReplaceAllStringFunc(corefile, func(line string) string {
		if strings.Contains(line, ":53 ") {
			return strings.ReplaceAll(line, ":53 ", ":PORT ") + "\n bind 127.0.0.1"
		}
		return line
	})
	return strings.NewReplacer(":1053", fmt.Sprintf(":%d", second.Port()), "/etc/resolv.conf", upstream, "to 192.0.2.2",
		"to 127.0.0.1", "lameduck 5s", "lameduck 1ms", "    bind 169.254.20.10\n", "", "<address of the cluster's DNS>", upstream).Replace(corefile)
}

// answers waits until a query (name and type) has this answer.
func answers(t *testing.T, server, question, want string) {
	qname, qtype, _ := strings.Cut(question, " ")
	eventually(t, question, func(ctx context.Context) error {
		got, err := ask(ctx, server, qname, qtype)
		if err == nil && got != want {
			err = fmt.Errorf("got %s, want %s", got, want)
		}
		return err
	})
}

// ask queries a name over UDP. For AXFR it transfers the zone of the set, and checks that the name is in it.
func ask(ctx context.Context, address, qname, qtype string) (string, error) {
	if qtype == "AXFR" {
		return transfer(address, qname)
	}
	answer, err := cluster.DNSAt(address).Ask(ctx, qname, qtype)
	if len(answer.Records) > 3 {
		return fmt.Sprintf("%d records", len(answer.Records)), err
	}
	return answer.Text(), err
}

func transfer(address, qname string) (string, error) {
	envelopes, err := new(dns.Transfer).In(new(dns.Msg).SetAxfr("clusterset.local."), address)
	if err != nil {
		return "", err
	}
	found := "not transferred"
	for envelope := range envelopes {
		if envelope.Error != nil {
			err = envelope.Error
		}
		for _, rr := range envelope.RR {
			if rr.Header().Name == qname {
				found = "transferred"
			}
		}
	}
	return found, err
}
