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
	metrics, err := os.ReadFile("watch/metrics.go")
	must(t, err)
	skips, err := os.ReadFile("record/skip.go")
	must(t, err)
	text := section(t, "Metrics")
	for code, expressions := range map[string][2]string{
		string(metrics): {`(?:gauge\(|\tName: +)"([a-z_]+)"`, "(?m)^\\* `coredns_multicluster_([a-z_]+)[{`]"},
		string(skips):   {` Reason = "([a-z_]+)"`, "(?m)^\\* `([a-z_]+)`:"},
	} {
		want, got := matches(expressions[0], code), matches(expressions[1], text)
		if len(want) < 6 || !slices.Equal(got, want) {
			t.Errorf("the README has\n%q\nwant\n%q", got, want)
		}
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
