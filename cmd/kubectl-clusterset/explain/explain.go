// SPDX-License-Identifier: Apache-2.0

// Package explain prints what a controller says about a service, and compares it with what DNS answers.
package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/dns"
	"github.com/clusterset-dns/clusterset-dns/controller/state"
)

// DefaultZone is the zone of the set unless a flag sets another.
const DefaultZone = "clusterset.local"

// An Explanation is that of one service in one cluster.
type Explanation struct {
	Context string `json:"context"`
	// Name is the DNS name that clients resolve.
	Name string `json:"name"`
	*state.Explanation
	// Server is the DNS server that was queried, empty if none was; Answers are its answers.
	Server  string   `json:"server,omitempty"`
	Answers []Answer `json:"answers"`
}

// An Answer is that of DNS, with the expected one.
type Answer struct {
	dns.Answer
	// Wrong reports whether the records differ from Expected. Part reports whether they are correct, but only some of
	// Expected: DNS may prefer some endpoints of a headless service, or limit their number.
	Wrong    bool     `json:"wrong,omitempty"`
	Part     bool     `json:"part,omitempty"`
	Expected []string `json:"expected"`
}

// Of is the explanation of a controller before DNS is queried.
func Of(context, zone string, from *state.Explanation) *Explanation {
	namespace, name, _ := strings.Cut(from.Service, "/")
	return &Explanation{
		Context: context, Name: name + "." + namespace + ".svc." + strings.TrimSuffix(zone, "."), Explanation: from,
		Answers: []Answer{},
	}
}

// Expect compares an answer with what DNS is to return for the import of a service.
func Expect(answer dns.Answer, imported *state.Import, addresses []string) Answer {
	out := Answer{Answer: answer, Expected: []string{}}
	for _, address := range addresses {
		if strings.Contains(address, ":") == (answer.Type == "AAAA") {
			out.Expected = append(out.Expected, address)
		}
	}
	slices.Sort(out.Records)
	slices.Sort(out.Expected)
	out.Wrong = !slices.Equal(out.Records, out.Expected)
	headless := imported != nil && imported.Type == string(v1beta1.Headless)
	if out.Wrong && headless && len(out.Records) > 0 &&
		!slices.ContainsFunc(out.Records, func(got string) bool { return !slices.Contains(out.Expected, got) }) {
		out.Wrong, out.Part = false, true
	}
	out.Wrong = out.Wrong || imported != nil && !headless && answer.Rcode == "NXDOMAIN"
	return out
}

// Types are the record types to query.
func (e *Explanation) Types() []string {
	if slices.ContainsFunc(e.DNS, func(address string) bool { return strings.Contains(address, ":") }) {
		return []string{"A", "AAAA"}
	}
	return []string{"A"}
}

// Answered adds the answer of a server, and a problem if it is wrong.
func (e *Explanation) Answered(server string, answer dns.Answer) {
	e.Server = server
	out := Expect(answer, e.Import, e.DNS)
	if out.Wrong {
		e.Problem("dns-names", "kubectl clusterset check --contexts "+e.Context, "DNS returns %s for %s %s instead of %s.",
			answer.Text(), answer.Name, answer.Type, out.ExpectedText())
	}
	e.Answers = append(e.Answers, out)
}

// Problem adds a problem that the controller does not see.
func (e *Explanation) Problem(name, fix, format string, args ...any) {
	e.Problems = append(e.Problems, state.Finding{
		Name: name, Severity: state.Warning, What: fmt.Sprintf(format, args...), Fix: fix,
	})
}

// ExpectedText is Expected as text.
func (a Answer) ExpectedText() string { return cmp.Or(strings.Join(a.Expected, " "), "no records") }
