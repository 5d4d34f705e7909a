// SPDX-License-Identifier: Apache-2.0

package diagnosis

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
	"github.com/clusterset-dns/clusterset-dns/controller/state"
)

// DefaultZone is the zone of the set unless a flag sets another.
const DefaultZone = "clusterset.local"

// An Explanation explains one service in one cluster.
type Explanation struct {
	Context string `json:"context"`
	// Name is the DNS name that clients resolve.
	Name string `json:"name"`
	*state.Explanation
	// Server is the DNS server that was queried, empty if none was; Answers are its answers.
	Server  string       `json:"server,omitempty"`
	Answers []NameAnswer `json:"answers"`
}

// A NameAnswer is an answer of DNS, with the expected one.
type NameAnswer struct {
	cluster.Answer
	// Wrong reports whether the records differ from Expected. Some of them are correct for a headless service: DNS may prefer
	// some endpoints, or limit their number.
	Wrong    bool     `json:"wrong,omitempty"`
	Expected []string `json:"expected"`
}

// Explain explains a service in all clusters at once. The error has the clusters whose controllers do not answer.
func Explain(ctx context.Context, clusters []*cluster.Cluster, service types.NamespacedName, zone string) (List[*Explanation], error) {
	all, found := make(List[*Explanation], len(clusters)), make([]state.Findings, len(clusters))
	err := cluster.Each(clusters, func(i int, c *cluster.Cluster) error {
		e := &Explanation{Context: c.Context, Explanation: &state.Explanation{}, Answers: []NameAnswer{}}
		if err := c.Ask(ctx, state.PathExplain+"?service="+url.QueryEscape(service.String()), e.Explanation); err != nil {
			return err
		}
		c.ID, e.Name = e.Cluster, nameOf(service.Namespace, service.Name, zone)
		e.ask(ctx, c)
		all[i], found[i] = e, e.Problems
		return nil
	})
	fill(clusters, found)
	return slices.DeleteFunc(all, func(e *Explanation) bool { return e == nil }), err
}

// ask adds the answers of the cluster's DNS, and their problems.
func (e *Explanation) ask(ctx context.Context, c *cluster.Cluster) {
	kinds := []string{"A"}
	if slices.ContainsFunc(e.DNS, func(address string) bool { return strings.Contains(address, ":") }) {
		kinds = append(kinds, "AAAA")
	}
	server, err := c.DNS(ctx)
	if err == nil {
		defer server.Close()
		e.Server = server.Name
		e.Answers, err = resolve(ctx, server, e.Name, kinds, e.Import, e.DNS)
	}
	if err != nil {
		e.Problems.Warn("dns-reachable", "", "DNS was not queried: %v.", err)
	}
	for _, answer := range e.Answers {
		if answer.Wrong {
			e.Problems.Fail("dns-names", "kubectl clusterset check --contexts "+e.Context, "DNS returns %s for %s %s instead of %s.",
				answer.Text(), answer.Name, answer.Type, answer.expectedText())
		}
	}
}

// nameOf is the name of a service in a zone.
func nameOf(namespace, name, zone string) string {
	return name + "." + namespace + ".svc." + strings.TrimSuffix(zone, ".")
}

// resolve queries the records of a name until an error, and compares them with the expected answers for the import of its
// service.
func resolve(ctx context.Context, server *cluster.DNSServer, name string, kinds []string, imported *state.Import, addresses []string) (
	[]NameAnswer, error,
) {
	answers := []NameAnswer{}
	for _, kind := range kinds {
		answer, err := server.Ask(ctx, name, kind)
		if err != nil {
			return answers, err
		}
		answers = append(answers, expect(answer, imported, addresses))
	}
	return answers, nil
}

// expect compares an answer with the expected answer for the import of a service.
func expect(answer cluster.Answer, imported *state.Import, addresses []string) NameAnswer {
	out := NameAnswer{Answer: answer, Expected: []string{}}
	for _, address := range addresses {
		if strings.Contains(address, ":") == (answer.Type == "AAAA") {
			out.Expected = append(out.Expected, address)
		}
	}
	slices.Sort(out.Expected)
	if imported != nil && imported.Reason == state.Foreign { // the options fallback and groups decide what it resolves to
		out.Expected, out.Wrong = append([]string{}, out.Records...), answer.Rcode != "NOERROR" && answer.Rcode != "NXDOMAIN"
		return out
	}
	headless := imported != nil && imported.Type == string(v1beta1.Headless)
	if imported != nil && !headless && imported.Ready == 0 && answer.Rcode == "NXDOMAIN" {
		return out // as with the option ignore empty_service
	}
	part := headless && len(out.Records) > 0 &&
		!slices.ContainsFunc(out.Records, func(got string) bool { return !slices.Contains(out.Expected, got) })
	out.Wrong = !part && !slices.Equal(out.Records, out.Expected) ||
		answer.Rcode != "NOERROR" && (answer.Rcode != "NXDOMAIN" || imported != nil && !headless)
	return out
}

// expectedText is Expected as text.
func (a NameAnswer) expectedText() string { return cmp.Or(strings.Join(a.Expected, " "), "no records") }

// Text writes the explanation as text.
func (e *Explanation) Text(out io.Writer) {
	fmt.Fprintf(out, "%s in cluster %s: %s\n", e.Service, e.Cluster, e.Name)
	var imports, exports, conditions, endpoints [][]any
	if e.Import != nil {
		imports = append(imports, importRow(e.Import))
	}
	for _, each := range e.Exports {
		since := ""
		if !each.Since.IsZero() {
			since = each.Since.UTC().Format(time.RFC3339)
		}
		exports = append(exports, []any{
			each.Cluster, since, each.State, fmt.Sprintf("%d/%d", each.Ready, each.Endpoints), strings.Join(each.Rules, ", "),
		})
	}
	for _, each := range e.Conditions {
		_, name, _ := strings.Cut(each.Type, "/")
		conditions = append(conditions, []any{name, each.Status, each.Reason, each.Message})
	}
	for _, each := range e.Endpoints {
		endpoints = append(endpoints, []any{each.Address, each.Cluster, each.State, each.Reason})
	}
	Table(out, "\n", importHeadings, imports)
	Table(out, "\n", "EXPORT SINCE STATE READY RULES", exports)
	Table(out, "\n", "PREFERENCE STATUS REASON MESSAGE", conditions)
	Table(out, "\n", "ENDPOINT CLUSTER STATE REASON", endpoints)
	if len(e.Answers) > 0 {
		fmt.Fprintf(out, "\nDNS (queried at %s)\n", e.Server)
	}
	for _, answer := range e.Answers {
		verdict := "correct"
		if answer.Wrong {
			verdict = "WRONG, expected " + answer.expectedText()
		}
		fmt.Fprintf(out, "%s %s: %s (%s)\n", answer.Name, answer.Type, answer.Text(), verdict)
	}
	if len(e.Problems) == 0 {
		fmt.Fprintln(out, "\nNo problems found.")
		return
	}
	fmt.Fprintln(out, "\nProblems")
	for _, problem := range e.Problems {
		fmt.Fprintf(out, "- %s\n", problem.What)
		if problem.Fix != "" {
			fmt.Fprintf(out, "  > %s\n", problem.Fix)
		}
	}
}
