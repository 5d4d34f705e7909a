// SPDX-License-Identifier: Apache-2.0

// Package check diagnoses problems in and between the clusters of a set. Each
// check is a pure function of facts that returns problems and their fixes.
package check

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/explain"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/manifest"
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
	Check   string `json:"check"`
	Context string `json:"context"`
	Result  string `json:"result"`
	// What is the problem, empty if there is none.
	What string `json:"what,omitempty"`
	// Fix is the command that fixes it, which begins with kubectl or helm and may
	// have placeholders in angle brackets; or a sentence, in which commands stand
	// between backquotes. Lines after the first are text to copy into a file.
	Fix string `json:"fix,omitempty"`
	// Reason is why the check was skipped, and what to do instead, or the note of a
	// check that passed.
	Reason string `json:"reason,omitempty"`
}

// A problem is what a check found.
type problem struct {
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
	Name string `json:"name"`
	// About is the condition that it verifies.
	About string `json:"about"`
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
var Checks = slices.Concat(apiChecks, rightsChecks, controllerChecks, networkChecks, dnsChecks, nodeLocalChecks,
	serviceChecks)

// Run runs all checks for all clusters.
func Run(set *Set) []Finding {
	findings := []Finding{}
	for _, check := range Select(set.Pre) {
		for _, c := range set.Clusters {
			finding := Finding{Check: check.Name, Context: c.Context, Result: OK}
			if finding.Reason = check.skips(set, c); finding.Reason != "" {
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
				findings = append(findings, finding)
			}
		}
	}
	return findings
}

func (check *Check) skips(set *Set, c *Cluster) string {
	switch {
	case !reached(c) && !check.unreached:
		return "The API server is unreachable."
	case check.skip != nil:
		return check.skip(set, c)
	}
	return ""
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
			rows = append(rows, []any{finding.Result, finding.Check, finding.Context, finding.Reason})
		}
	}
	if err := output.Table(out, wide, "RESULT CHECK CONTEXT REASON", rows); err != nil {
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
			fmt.Fprintf(out, "   > %s\n", strings.ReplaceAll(finding.Fix, "\n", "\n     "))
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

// List writes the names of checks.
func List(out io.Writer, wide bool, checks []Check) error {
	var rows [][]any
	for _, check := range checks {
		rows = append(rows, []any{check.Name, check.About})
	}
	return output.Table(out, wide, "CHECK ABOUT", rows)
}

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

// logs is the command that prints the logs of the controller.
func (c *Cluster) logs() string {
	return c.kubectl("-n %s logs -l app.kubernetes.io/component=controller --prefix --tail=200", c.System)
}

// cause is the instruction to look into the logs of the controller.
func (c *Cluster) cause() string {
	return "Find the cause in the logs of the controller: `" + c.logs() + "`."
}

// charts is where the charts of releases are published.
const charts = "oci://ghcr.io/clusterset-dns/charts/clusterset-dns"

// chart is a command of Helm on the installation in the cluster. A user of a
// release has no checkout.
func (c *Cluster) chart(verb, flags string) string {
	from := "deploy/chart"
	if c.Release != "" {
		from = charts + " --version " + c.Release
	}
	return fmt.Sprintf("helm %s %s %s --kube-context %s --namespace %s %s", verb, c.named("clusterset-dns"), from, c.Context,
		c.System, flags)
}

// install is the command that installs the controller.
func (c *Cluster) install() string {
	flags := "--create-namespace --set clusterId=<id>"
	if c.Release == "" {
		flags += " --set image.registry=<registry>" // only images of releases are published
	}
	return c.chart("install", flags)
}

// rename is the command that gives the cluster another id.
func (c *Cluster) rename() string {
	return c.chart("upgrade", "--reset-then-reuse-values --set clusterId=<new id>")
}

// grantRights is the command that restores the rights of the controller and of members. The manifest has the names of
// the default set: applied for a named set, it would take the rights from the default set.
func (c *Cluster) grantRights() string {
	if c.Set != "" {
		return c.chart("upgrade", "--reset-then-reuse-values")
	}
	return c.apply(manifest.Rights)
}

// apply is the command that puts a manifest into the cluster.
func (c *Cluster) apply(name string) string {
	return "kubectl clusterset manifest " + name + c.system() + " | " +
		c.kubectl("apply --server-side --force-conflicts -f -")
}
