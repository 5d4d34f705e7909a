// SPDX-License-Identifier: Apache-2.0

// Package diagnosis finds problems in and between the clusters of a set: checks, each of which is a pure function of facts
// that returns problems and their fixes; explanations of services; a test of connectivity; and an archive for bug reports.
package diagnosis

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/clusterset-dns/clusterset-dns/controller/state"
)

// Results of a check in a cluster, in addition to the severities of findings.
const (
	OK      = "ok"
	Skipped = "skipped"
)

// A Finding is what one check found in one cluster.
type Finding struct {
	Check string `json:"check"`
	// About is the condition that it verifies, empty if there is a problem.
	About   string `json:"about,omitempty"`
	Context string `json:"context"`
	Result  string `json:"result"`
	// What describes the problem, empty if there is none.
	What string `json:"what,omitempty"`
	// Fix is the command that fixes it, which begins with kubectl or helm and may have placeholders in angle brackets; or a
	// sentence, with commands in backquotes.
	Fix string `json:"fix,omitempty"`
	// Reason is why the check was skipped, and what to do instead.
	Reason string `json:"reason,omitempty"`
}

// problems are the findings of a check in a cluster.
type problems struct {
	check string
	state.Findings
	// unknown is why there may be more.
	unknown string
}

// skip says that the check lacks a fact: without problems, its result is Skipped. The first reason counts.
func (p *problems) skip(format string, args ...any) {
	p.unknown = cmp.Or(p.unknown, fmt.Sprintf(format, args...))
}

func (p *problems) fail(fix, format string, args ...any) { p.Fail(p.check, fix, format, args...) }
func (p *problems) warn(fix, format string, args ...any) { p.Warn(p.check, fix, format, args...) }

// A Check looks for one kind of problem.
type Check struct {
	// Name and About are copied to its findings.
	Name, About string
	// run adds the problems of a cluster, and skips what it does not know. It changes nothing.
	run func(*Set, *Cluster, *problems)
	// before makes the check run before clusterset-dns is installed, too.
	before bool
	// unreached makes the check run for unreachable clusters too; other checks are skipped.
	unreached bool
	// stated skips the check if the state of the controller is unknown.
	stated bool
}

// allChecks are all checks. Causes come before their effects.
var allChecks = slices.Concat(apiChecks, []Check{memberLeast}, clusterChecks, dnsChecks)

// Findings are the findings of all checks in all clusters.
type Findings []Finding

// Check runs all checks for all clusters.
func (s *Set) Check() Findings {
	findings := Findings{}
	for _, check := range allChecks {
		if s.Pre && !check.before {
			continue
		}
		for _, c := range s.Clusters {
			finding := Finding{Check: check.Name, About: check.About, Context: c.Context, Result: OK}
			found := problems{check: check.Name}
			switch {
			case c.Unreachable != nil && !check.unreached:
				found.skip("The API server is unreachable.")
			case c.State == nil && check.stated:
				found.skip(noAnswer)
			default:
				check.run(s, c, &found)
			}
			if finding.Reason = found.unknown; finding.Reason != "" {
				finding.Result = Skipped
			}
			if len(found.Findings) == 0 {
				findings = append(findings, finding)
			}
			for _, each := range found.Findings {
				findings = append(findings, Finding{
					Check: each.Name, Context: c.Context, Result: each.Severity, What: each.What, Fix: each.Fix,
				})
			}
		}
	}
	return findings
}

// Count is the number of findings with a result.
func (f Findings) Count(result string) int {
	n := 0
	for _, finding := range f {
		if finding.Result == result {
			n++
		}
	}
	return n
}

// Text writes the problems as text.
func (f Findings) Text(out io.Writer) {
	mark := map[string]string{state.Failed: "✗", state.Warning: "!"}
	for _, finding := range f {
		if finding.What == "" {
			continue
		}
		fmt.Fprintf(out, "%s  %s (%s): %s\n", mark[finding.Result], finding.Context, finding.Check, finding.What)
		if finding.Fix != "" {
			fmt.Fprintf(out, "   > %s\n", finding.Fix)
		}
	}
	fmt.Fprintf(out, "%d ok, %d warnings, %d failed, %d skipped (for reasons, see -o json)\n",
		f.Count(OK), f.Count(state.Warning), f.Count(state.Failed), f.Count(Skipped))
}

// system is the flag --system-namespace unless it has its default.
func (c *Cluster) system() string {
	if c.Namespace == "clusterset-dns" {
		return ""
	}
	return " --system-namespace " + c.Namespace
}

// flag is the flag --zone unless it has its default.
func (s *Set) flag() string {
	if zone := strings.TrimSuffix(s.Zone, "."); zone != DefaultZone {
		return " --zone " + zone
	}
	return ""
}

// kubectl is a command in the cluster.
func (c *Cluster) kubectl(format string, args ...any) string {
	return "kubectl --context " + c.Context + " " + fmt.Sprintf(format, args...)
}

// chart is a command of Helm on the installation in the cluster.
func (c *Cluster) chart(verb, flags string) string {
	return fmt.Sprintf("helm %s clusterset-dns deploy/chart --kube-context %s --namespace %s %s", verb, c.Context, c.Namespace, flags)
}
