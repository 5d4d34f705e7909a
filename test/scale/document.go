// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/test/bench/figure"
)

const introduction = `# Scale

One controller and one CoreDNS with all other clusters of the set simulated, on one machine.
` + "`make scale`" + ` measures this and writes this page. Everything shares two cores. A load average above 1
means that other programs ran, too: then times are longer, and processor times hardly differ.
[Sizing](operate/sizing.md) has the formulas.

- **Real:** the controller; CoreDNS and its queries; their own kube-apiserver and etcd (which does
  not wait for its disk); TLS, HTTP/2, one listener and one credential per member.
- **Simulated:** the members. A [model of an API server](../test/sim/apiserver) per member answers
  lists and watches; contract tests hold it to a real one. Its published slices are made by the
  controller's own code. All members are in one process, over loopback, without delay or loss, and
  have nothing but published slices and heartbeats.
- **A change** gives one endpoint another address. Its time lasts from the request to the member's
  API server to the first DNS answer with the address. Half of the services are headless; only their
  changes can be timed.

`

const conditionsHead = "| set | parts | taken |\n| --- | --- | --- |\n"

// document is the page with all results of a folder.
func document(folder string) (string, error) {
	files, err := filepath.Glob(filepath.Join(folder, "now-*.json"))
	if err != nil {
		return "", err
	}
	var text strings.Builder
	text.WriteString(introduction)
	results := map[int]*result{} // by members
	var priced *units            // of the largest set
	for _, file := range files {
		r, err := load(file)
		if err != nil {
			return "", err
		}
		results[r.Shape.Members] = r
	}
	var all []*result
	for _, members := range slices.Backward(slices.Sorted(maps.Keys(results))) {
		all = append(all, results[members])
		if priced == nil {
			priced = results[members].Units
		}
	}
	text.WriteString(together(all).Markdown() + "\n")
	if priced != nil {
		text.WriteString(model(priced, 511, 325).Markdown())
	}
	return strings.TrimRight(text.String(), "\n") + "\n", nil
}

// together is a table with a column for each result.
func together(results []*result) figure.Table {
	table := figure.Table{Title: "Results", Text: conditionsHead}
	var rows []measured
	for column, r := range results {
		table.Columns = append(table.Columns, r.title())
		table.Text += r.conditions()
		for _, f := range r.Figures {
			at := slices.IndexFunc(rows, func(row measured) bool { return row.What == f.What })
			if at < 0 {
				f.Cells = append(make([]string, column), f.Cells[0])
				if f.Verdict == figure.Missed && len(results) > 1 {
					f.Why = fmt.Sprintf("%d clusters", r.Shape.Members)
				}
				rows = append(rows, f)
				continue
			}
			row := &rows[at]
			row.Cells = append(row.Cells, make([]string, column-len(row.Cells))...)
			row.Cells = append(row.Cells, f.Cells[0])
			switch {
			case f.Verdict != figure.Missed:
			case row.Verdict == figure.Missed:
				row.Why = fmt.Sprintf("%s, %d clusters", row.Why, r.Shape.Members)
			default:
				row.Verdict, row.Why = figure.Missed, fmt.Sprintf("%d clusters", r.Shape.Members)
			}
		}
	}
	slices.SortStableFunc(rows, func(a, b measured) int { return partNumber(a.Part) - partNumber(b.Part) })
	for _, row := range rows {
		table.Figures = append(table.Figures, row.Figure)
	}
	return table
}

const modelText = `
A calculation, not a measurement: one of %d full members, if every endpoint change of the set is
imported everywhere and %d endpoints change in a second, spread evenly. The costs of one reader are
those of the largest set above.`

// model calculates what a full set costs each of its API servers.
func model(u *units, clusters int, rate float64) figure.Table {
	readers := float64(clusters - 1)
	beats := readers / member.HeartbeatInterval.Seconds() // deliveries a second
	own := rate / float64(clusters) * readers
	share := func(nanoseconds float64) string { return fmt.Sprintf("%.1f %% of a core", nanoseconds/1e7) }
	row := func(what, format string, args ...any) figure.Figure {
		return figure.Figure{What: what, Cells: cell(format, args...)}
	}
	return figure.Table{
		Title:   fmt.Sprintf("%d full members, on paper", clusters),
		Text:    fmt.Sprintf(modelText, clusters, int(rate)),
		Columns: []string{"each API server"},
		Figures: []figure.Figure{
			row("connections of readers, watches", "%s, %s (in the set: %s, %s)", thousands(clusters-1),
				thousands(2*(clusters-1)), thousands(clusters*(clusters-1)), thousands(2*clusters*(clusters-1))),
			row("memory of readers", "%s", figure.Bytes(readers*u.Memory)),
			row("heartbeats to readers", "%s", share(beats*u.Heartbeat)),
			row("its own published changes to readers", "%s", share(own*u.Change)),
			row("imported changes, which no reader asked for", "%s", share(rate*readers*u.Other)),
			row("writes of imported changes", "%s", share(rate*u.Write)),
			row("sent to readers", "%s/s of heartbeats, %s/s of changes", figure.Bytes(beats*u.HeartbeatBytes),
				figure.Bytes(own*u.ChangeBytes)),
			row("received by its controller", "%s/s of heartbeats, %s/s of changes",
				figure.Bytes(beats*u.HeartbeatBytes), figure.Bytes(rate*u.ChangeBytes)),
			row("a list by every reader, if watches were not resumed", "%s of processor time",
				figure.Time(readers*u.List)),
		},
	}
}
