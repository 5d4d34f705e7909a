// SPDX-License-Identifier: Apache-2.0

package connectivity

import (
	"fmt"
	"io"
	"slices"

	"github.com/clusterset-dns/clusterset-dns/cmd/clusterset-controller/probe"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/output"
)

// A Report has two Paths from each cluster to each: by the clusterset IP, and headless.
type Report struct {
	Paths []Path `json:"paths"`
}

// A Path is from the pod of a context to that of another, or to itself.
type Path struct {
	From string `json:"from"`
	To   string `json:"to"`
	// Name is what the pod resolves.
	Name string `json:"name"`
	probe.Result
}

// fixes are what to do next.
var fixes = map[probe.Step]string{
	probe.Unresolved: "Run `kubectl clusterset check` for both clusters: it finds the controller or the DNS server that lacks the name.",
	probe.Timeout: "Route the pod ranges of both clusters to each other, and allow TCP between them in firewalls, security groups " +
		"and NetworkPolicies.",
	probe.Refused: fmt.Sprintf("Find the firewall or NetworkPolicy that rejects TCP connections to port %d of the pods.", probe.Port),
	probe.LargeLost: "The MTU of the path is too small: lower the MTU of the CNI in both clusters, or allow ICMP " +
		"\"fragmentation needed\" (ICMPv6 \"packet too big\").",
	probe.Failed: "Run `kubectl clusterset check` for both clusters: pod ranges may overlap, or routes are missing.",
}

// Failed is how many paths are not ok.
func (r *Report) Failed() (n int) {
	for _, p := range r.Paths {
		if p.Step != probe.OK {
			n++
		}
	}
	return n
}

func (r *Report) has(steps ...probe.Step) bool {
	return slices.ContainsFunc(r.Paths, func(p Path) bool { return slices.Contains(steps, p.Step) })
}

// Text writes a table of clusters, and what to do about each path that fails.
func (r *Report) Text(out io.Writer, wide bool) error {
	var rows [][]any
	for i := 0; i < len(r.Paths); i += 2 {
		rows = append(rows, []any{r.Paths[i].From, r.Paths[i].To, r.Paths[i].Step, r.Paths[i+1].Step})
	}
	if err := output.Table(out, wide, "FROM TO CLUSTERSET_IP HEADLESS", rows); err != nil {
		return err
	}
	for _, p := range r.Paths {
		if p.Step != probe.OK {
			fmt.Fprintf(out, "\n✗  %s → %s: %s: %s (%s)\n   > %s\n", p.From, p.To, p.Name, p.Step, p.Error, fixes[p.Step])
		}
	}
	_, err := fmt.Fprintf(out, "\n%d of %d connections are ok\n", len(r.Paths)-r.Failed(), len(r.Paths))
	return err
}
