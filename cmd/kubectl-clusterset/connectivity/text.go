// SPDX-License-Identifier: Apache-2.0

package connectivity

import (
	"fmt"
	"io"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/output"
)

// A Report is what a test found.
type Report struct {
	Pods     []Pod     `json:"pods"`
	Probes   []Probe   `json:"probes"`
	Findings []Finding `json:"findings"`
}

// Count is how many probes have a result.
func (r *Report) Count(result string) int {
	n := 0
	for _, p := range r.Probes {
		if p.Result == result {
			n++
		}
	}
	return n
}

// anyCluster is shown in the place of a cluster for an IP.
const anyCluster = "(clusterset IP)"

// Text writes a table of clusters and what is wrong; wide output has all probes.
func (r *Report) Text(out io.Writer, wide bool) error {
	headings, rows := "FROM TO TCP TCP_LARGE UDP UDP_LARGE SET_NAME CLUSTER_NAME", r.matrix()
	if wide {
		headings, rows = "FROM NODE TO TO_NODE PATH TARGET BYTES BY RESULT", r.all()
	}
	if err := output.Table(out, wide, headings, rows); err != nil {
		return err
	}
	mark := map[string]string{Failed: "✗", Warning: "!", Skipped: "-"}
	for i, f := range r.Findings {
		if i == 0 {
			fmt.Fprintln(out)
		}
		between := f.From
		if f.To != "" {
			between += " → " + f.To
		}
		fmt.Fprintf(out, "%s  %s: %s\n", mark[f.Result], between, f.What)
		if f.Fix != "" {
			fmt.Fprintf(out, "   > %s\n", f.Fix)
		}
	}
	_, err := fmt.Fprintf(out, "\n%d probes ok, %d failed, %d skipped\n", r.Count(OK), r.Count(Failed), r.Count(Skipped))
	return err
}

// matrix has a row for each two clusters, and one for the IP in each.
func (r *Report) matrix() (rows [][]any) {
	columns := Paths[:len(Paths)-1]
	for i, p := range r.Probes {
		if i > 0 && r.Probes[i-1].From.Context == p.From.Context && r.Probes[i-1].To.Context == p.To.Context {
			continue
		}
		to := p.To.Context
		if to == "" {
			to = anyCluster
		}
		row := []any{p.From.Context, to}
		for _, path := range columns {
			cell := map[string]int{}
			for _, each := range r.Probes {
				if each.From.Context == p.From.Context && each.To.Context == p.To.Context && each.column() == path {
					cell[each.Result]++
				}
			}
			row = append(row, text(cell))
		}
		rows = append(rows, row)
	}
	return rows
}

// column is where a probe is shown.
func (p Probe) column() string {
	if p.Path == PathIP {
		return p.Network
	}
	return p.Path
}

func text(cell map[string]int) string {
	switch ok, failed := cell[OK], cell[Failed]; {
	case ok > 0 && failed > 0:
		return fmt.Sprintf("%d of %d failed", failed, ok+failed)
	case failed > 0:
		return Failed
	case ok > 0:
		return OK
	case cell[Skipped] > 0:
		return Skipped
	}
	return "-"
}

func (r *Report) all() (rows [][]any) {
	for _, p := range r.Probes {
		result := p.Result
		if p.Error != "" {
			result += ": " + p.Error
		}
		to := p.To.Context
		if to == "" {
			to = anyCluster
		}
		rows = append(rows, []any{
			p.From.Context, p.From.Node, to, output.Dash(p.To.Node), p.Path, p.Target, p.Bytes, output.Dash(p.By), result,
		})
	}
	return rows
}
