// SPDX-License-Identifier: Apache-2.0

package multicluster

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/coredns/coredns/plugin/metadata"
	"github.com/coredns/coredns/plugin/test"
	"github.com/coredns/coredns/request"
	"github.com/miekg/dns"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/watch"
)

// section returns the text of the README below a heading.
func section(t *testing.T, heading string) string {
	t.Helper()
	text, err := os.ReadFile("README.md")
	must(t, err)
	_, below, found := strings.Cut(string(text), "\n## "+heading+"\n")
	if !found {
		t.Fatalf("README.md has no section %s", heading)
	}
	below, _, _ = strings.Cut(below, "\n## ")
	return below
}

// matches returns the distinct first groups of all matches, sorted.
func matches(expression, text string) []string {
	var found []string
	for _, m := range regexp.MustCompile(expression).FindAllStringSubmatch(text, -1) {
		found = append(found, m[1])
	}
	slices.Sort(found)
	return slices.Compact(found)
}

func TestTheReadmeHasEveryOption(t *testing.T) {
	syntax := section(t, "Syntax")
	var forms []string
	for name, o := range options {
		forms = append(forms, strings.TrimSpace(name+" "+o.form))
	}
	slices.Sort(forms)
	_, block, _ := strings.Cut(syntax, "{\n")
	block, _, _ = strings.Cut(block, "}\n")
	if got := matches(`(?m)^ {4}(.+)$`, block); !slices.Equal(got, forms) {
		t.Errorf("the syntax has\n%q\nwant\n%q", got, forms)
	}
	names := slices.Sorted(maps.Keys(options))
	if got := matches("(?m)^\\* `([a-z_]+)`", syntax); !slices.Equal(got, names) {
		t.Errorf("explained are %q, want %q", got, names)
	}
}

func TestTheReadmeHasEveryMetric(t *testing.T) {
	options := watch.Options{
		Kubeconfig: newAPIServer(t, "10.42.0.1").kubeconfig, Imports: []watch.Resource{watch.ServiceImports, watch.GKEServiceImports},
	}
	source, err := watch.Open(t.Context(), options, &newTestPlugin().config)
	must(t, err)
	<-source.Synced()
	families, err := prometheus.DefaultGatherer.Gather()
	must(t, err)
	all := section(t, "Metrics")
	text := strings.Join(strings.Fields(all), " ")
	var want []string
	for _, family := range families {
		name := family.GetName()
		if !strings.HasPrefix(name, "coredns_multicluster_") {
			continue
		}
		var labels []string
		for _, label := range family.GetMetric()[0].GetLabel() {
			labels = append(labels, label.GetName())
		}
		line := fmt.Sprintf("* `%s{%s}` - %s", name, strings.Join(labels, ", "), strings.TrimSuffix(family.GetHelp(), "."))
		line = strings.Replace(line, "{}", "", 1)
		if !strings.Contains(text, line) {
			t.Errorf("the README has not %q", line)
		}
		want = append(want, name)
	}
	if got := matches("`(coredns_[a-z_]+)", all); len(want) < 7 || !slices.Equal(got, want) {
		t.Errorf("the README has the metrics\n%q\nwant\n%q", got, want)
	}
	code, err := os.ReadFile("record/skip.go")
	reasons := matches(` Reason = "([a-z_]+)"`, string(code))
	if got := matches("(?m)^\\* `([a-z_]+)`:", all); err != nil || len(reasons) == 0 || !slices.Equal(got, reasons) {
		t.Errorf("the README has the reasons\n%q\nwant\n%q", got, reasons)
	}
}

func TestTheReadmeHasEveryPieceOfMetadata(t *testing.T) {
	m := newTestPlugin(demo...)
	var names []string
	// Views and policies compare metadata with lower-case names, as the kubernetes plugin publishes them.
	for qname, want := range map[string]string{
		"_SQL._Tcp.DB.Demo.svc.clusterset.local.": "map[multicluster/cluster: multicluster/endpoint: multicluster/namespace:demo " +
			"multicluster/port-name:sql multicluster/protocol:tcp multicluster/service:db]",
		"DB-0.East.DB.Demo.SVC.ClusterSet.local.": "map[multicluster/cluster:east multicluster/endpoint:db-0 " +
			"multicluster/namespace:demo multicluster/port-name: multicluster/protocol: multicluster/service:db]",
	} {
		ctx := m.Metadata(metadata.ContextWithMetadata(t.Context()),
			request.Request{W: &test.ResponseWriter{}, Req: new(dns.Msg).SetQuestion(qname, dns.TypeSRV)})
		got := map[string]string{}
		for _, label := range metadata.Labels(ctx) {
			got[label] = metadata.ValueFunc(ctx, label)()
		}
		if fmt.Sprint(got) != want {
			t.Errorf("%s: the metadata is %v, want %s", qname, got, want)
		}
		names = slices.Sorted(maps.Keys(got))
	}
	if described := matches("`(multicluster/[a-z-]+)`", section(t, "Metadata")); !slices.Equal(described, names) {
		t.Errorf("the README has %q, want %q", described, names)
	}
}
