// SPDX-License-Identifier: Apache-2.0

// Package check diagnoses problems in and between the clusters of a set. Each
// check is a pure function of facts that returns problems and their fixes.
package check

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/explain"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/output"
)

// Results of a check in a cluster.
const (
	OK      = "ok"
	Warning = "warning"
	Failed  = "failed"
	Skipped = "skipped"
)

// A Finding is what one check found in one cluster.
type Finding struct {
	Check string `json:"check"`
	// About is the condition that it verifies, empty for a finding of the controller.
	About   string `json:"about,omitempty"`
	Context string `json:"context"`
	Result  string `json:"result"`
	// What is the problem, empty if there is none.
	What string `json:"what,omitempty"`
	// Fix is the command that fixes it, which begins with kubectl or helm and may
	// have placeholders in angle brackets; or a sentence, in which commands stand
	// between backquotes.
	Fix string `json:"fix,omitempty"`
	// Reason is why the check was skipped, and what to do instead, or the note of a
	// check that passed.
	Reason string `json:"reason,omitempty"`
}

// A problem is what a check found.
type problem struct {
	// name is that of a finding of the controller, empty for that of the check.
	name      string
	warning   bool
	what, fix string
}

// wrong is a problem that breaks names, or is about to.
func wrong(fix, format string, args ...any) problem {
	return problem{what: fmt.Sprintf(format, args...), fix: fix}
}

// odd is a problem that breaks nothing by itself.
func odd(fix, format string, args ...any) problem {
	return problem{warning: true, what: fmt.Sprintf(format, args...), fix: fix}
}

// A Check looks for one kind of problem.
type Check struct {
	// Name and About are those of its findings.
	Name, About string
	// run returns the problems of a cluster. It changes nothing.
	run func(*Set, *Cluster) []problem
	// unreached makes the check run for unreachable clusters too; others are skipped.
	unreached bool
	// skip returns the reason to skip a reachable cluster, or an empty string; nil
	// means never.
	skip func(*Set, *Cluster) string
	// note returns what a check that passed has to report, or an empty string.
	note func(*Set, *Cluster) string
}

// Checks are all checks. Causes come before their effects.
var Checks = slices.Concat(apiChecks, rightsChecks, networkChecks, controllerChecks, dnsChecks)

// Run runs all checks for all clusters.
func Run(set *Set) []Finding {
	findings := []Finding{}
	for _, check := range Select(set.Pre) {
		for _, c := range set.Clusters {
			finding := Finding{Check: check.Name, About: check.About, Context: c.Context, Result: OK}
			switch {
			case !reached(c) && !check.unreached:
				finding.Reason = "The API server is unreachable."
			case check.skip != nil:
				finding.Reason = check.skip(set, c)
			}
			if finding.Reason != "" {
				finding.Result = Skipped
				findings = append(findings, finding)
				continue
			}
			problems := check.run(set, c)
			if len(problems) == 0 {
				if check.note != nil {
					finding.Reason = check.note(set, c)
				}
				findings = append(findings, finding)
			}
			for _, p := range problems {
				finding.Result, finding.What, finding.Fix = Failed, p.what, p.fix
				if p.warning {
					finding.Result = Warning
				}
				if p.name != "" {
					finding.Check, finding.About = p.name, ""
				}
				findings = append(findings, finding)
			}
		}
	}
	return findings
}

func reached(c *Cluster) bool { return c.Unreachable == nil }

// Count is the number of findings with a result.
func Count(findings []Finding, result string) int {
	n := 0
	for _, finding := range findings {
		if finding.Result == result {
			n++
		}
	}
	return n
}

// Text writes the findings as text. Wide output has passed and skipped checks too.
func Text(out io.Writer, wide bool, findings []Finding) error {
	var rows [][]any
	for _, finding := range findings {
		if wide {
			rows = append(rows, []any{finding.Result, finding.Check, finding.Context, cmp.Or(finding.Reason, finding.About)})
		}
	}
	if err := output.Table(out, wide, "RESULT CHECK CONTEXT ABOUT", rows); err != nil {
		return err
	}
	if wide {
		fmt.Fprintln(out)
	}
	for _, finding := range findings {
		if finding.Result == OK && finding.Reason != "" && !wide {
			fmt.Fprintf(out, "✓  %s (%s): %s\n", finding.Context, finding.Check, finding.Reason)
		}
		if finding.What == "" {
			continue
		}
		fmt.Fprintf(out, "%s  %s (%s): %s\n", mark[finding.Result], finding.Context, finding.Check, finding.What)
		if finding.Fix != "" {
			fmt.Fprintf(out, "   > %s\n", finding.Fix)
		}
	}
	skipped := Count(findings, Skipped)
	hint := ""
	if skipped > 0 && !wide {
		hint = " (for reasons, see -o wide)"
	}
	_, err := fmt.Fprintf(out, "%d ok, %d warnings, %d failed, %d skipped%s\n",
		Count(findings, OK), Count(findings, Warning), Count(findings, Failed), skipped, hint)
	return err
}

var mark = map[string]string{Failed: "✗", Warning: "!"}

// system is the flag --system-namespace unless it has its default.
func (c *Cluster) system() string {
	if c.System == "clusterset-dns" {
		return ""
	}
	return " --system-namespace " + c.System
}

// flag is the flag --zone unless it has its default.
func (s *Set) flag() string {
	if zone := strings.TrimSuffix(s.Zone, "."); zone != explain.DefaultZone {
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
	release := "clusterset-dns"
	if c.Set != "" {
		release += "-" + string(c.Set)
	}
	return fmt.Sprintf("helm %s %s deploy/chart --kube-context %s --namespace %s %s", verb, release, c.Context, c.System, flags)
}

// applyCRDs is the command that installs the CRDs of the MCS API.
func (c *Cluster) applyCRDs() string {
	return c.kubectl("apply --server-side --force-conflicts -f deploy/chart/files/crds")
}
