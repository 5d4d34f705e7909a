// SPDX-License-Identifier: Apache-2.0

// Package check looks for whatever is wrong in the clusters of a set and
// between them. Each check is a pure function over facts; it says what is wrong
// and what fixes it.
package check

import (
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
	Check   string `json:"check"`
	Context string `json:"context"`
	Result  string `json:"result"`
	// What is wrong, empty where nothing is.
	What string `json:"what,omitempty"`
	// Fix is the command that fixes it, which begins with kubectl or helm and may
	// have placeholders in angle brackets; or a sentence, in which commands stand
	// between backquotes. Lines after the first are text to copy into a file.
	Fix string `json:"fix,omitempty"`
	// Why says why the check was skipped, and what to do instead if anything.
	Why string `json:"why,omitempty"`
}

// A problem is what a check found.
type problem struct {
	warning   bool
	what, fix string
}

// wrong is a problem because of which names do not work, or will not.
func wrong(fix, format string, args ...any) problem {
	return problem{what: fmt.Sprintf(format, args...), fix: fix}
}

// odd is a problem that a person should know of.
func odd(fix, format string, args ...any) problem {
	return problem{warning: true, what: fmt.Sprintf(format, args...), fix: fix}
}

// A Check is one thing that may be wrong.
type Check struct {
	Name string `json:"name"`
	// About says what it looks at.
	About string `json:"about"`
	// run finds problems of a cluster. It changes nothing.
	run func(*Set, *Cluster) []problem
	// unreached has the check run also for a cluster whose API server was not
	// reached; others are skipped there.
	unreached bool
	// skip returns why there is nothing to look at in a cluster that was reached,
	// or an empty string if there is; nil means that there always is.
	skip func(*Set, *Cluster) string
}

// Checks are all of them, what others rest on first.
var Checks = slices.Concat(apiChecks, rightsChecks, memberChecks, networkChecks, dnsChecks, serviceChecks)

// Run makes all checks in all clusters.
func Run(set *Set) []Finding {
	findings := []Finding{}
	for _, check := range Checks {
		for _, c := range set.Clusters {
			finding := Finding{Check: check.Name, Context: c.Context, Result: OK}
			if finding.Why = check.skips(set, c); finding.Why != "" {
				finding.Result = Skipped
				findings = append(findings, finding)
				continue
			}
			problems := check.run(set, c)
			if len(problems) == 0 {
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
		return "Its API server was not reached."
	case check.skip != nil:
		return check.skip(set, c)
	}
	return ""
}

func reached(c *Cluster) bool { return c.Unreachable == nil }

// Count is how many of the findings have a result.
func Count(findings []Finding, result string) int {
	n := 0
	for _, finding := range findings {
		if finding.Result == result {
			n++
		}
	}
	return n
}

// Text writes the findings for people; wide output has what is right, too.
func Text(out io.Writer, wide bool, findings []Finding) error {
	var rows [][]any
	for _, finding := range findings {
		if wide {
			rows = append(rows, []any{finding.Result, finding.Check, finding.Context, output.Dash(finding.Why)})
		}
	}
	if err := output.Table(out, wide, "RESULT CHECK CONTEXT WHY", rows); err != nil {
		return err
	}
	if wide {
		fmt.Fprintln(out)
	}
	for _, finding := range findings {
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
		hint = " (-o wide says why)"
	}
	_, err := fmt.Fprintf(out, "%d ok, %d warnings, %d failed, %d skipped%s\n",
		Count(findings, OK), Count(findings, Warning), Count(findings, Failed), skipped, hint)
	return err
}

var mark = map[string]string{Failed: "✗", Warning: "!"}

// List writes what there is to check.
func List(out io.Writer, wide bool) error {
	var rows [][]any
	for _, check := range Checks {
		rows = append(rows, []any{check.Name, check.About})
	}
	return output.Table(out, wide, "CHECK ABOUT", rows)
}

// cluster is the one with an id, nil where it was not reached or is none of
// them.
func (s *Set) cluster(id string) *Cluster {
	for _, c := range s.Clusters {
		if reached(c) && c.ID == id {
			return c
		}
	}
	return nil
}

// contextOf is the context of a cluster by its id, or a word that stands for it.
func (s *Set) contextOf(id string) string {
	if c := s.cluster(id); c != nil {
		return c.Context
	}
	return "<context of " + id + ">"
}

// join is the command that gives a cluster the credential of another.
func (s *Set) join(c *Cluster, id string) string {
	return "kubectl clusterset join " + c.Context + " " + s.contextOf(id) + c.system()
}

// system is the flag that names the namespace of the controller, where it is not
// the usual one.
func (c *Cluster) system() string {
	if c.System == "clusterset-dns" {
		return ""
	}
	return " --system-namespace " + c.System
}

// flag is the one that names the zone, where it is not the usual one.
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

// log is a sentence that says where the log of the controller is.
func (c *Cluster) log() string {
	return "Its log says what keeps it from that: `" +
		c.kubectl("-n %s logs -l app.kubernetes.io/component=controller --prefix --tail=200", c.System) + "`."
}

// chart is a command of Helm on the installation in the cluster.
func (c *Cluster) chart(verb, flags string) string {
	return fmt.Sprintf("helm %s clusterset-dns deploy/chart --kube-context %s --namespace %s %s", verb, c.Context,
		c.System, flags)
}

// install is the command that installs the controller.
func (c *Cluster) install() string {
	return c.chart("install", "--create-namespace --set clusterId=<id> --set image.registry=<registry>")
}

// rename is the command that gives the cluster another id.
func (c *Cluster) rename() string {
	return c.chart("upgrade", "--reset-then-reuse-values --set clusterId=<new id>")
}

// apply is the command that puts a manifest into the cluster.
func (c *Cluster) apply(name string) string {
	return "kubectl clusterset manifest " + name + c.system() + " | " +
		c.kubectl("apply --server-side --force-conflicts -f -")
}
