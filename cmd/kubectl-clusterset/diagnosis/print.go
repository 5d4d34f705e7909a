// SPDX-License-Identifier: Apache-2.0

package diagnosis

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"sigs.k8s.io/yaml"

	"github.com/clusterset-dns/clusterset-dns/controller/state"
)

// Escaped replaces control characters of a terminal, which text of other clusters may have.
type Escaped struct{ io.Writer }

// Write implements io.Writer.
func (e Escaped) Write(text []byte) (int, error) {
	_, err := io.WriteString(e.Writer, state.Escape(string(text)))
	return len(text), err
}

// apiVersion is the apiVersion of all JSON and YAML output. Within a version, fields are only added.
const apiVersion = "cli.clusterset-dns.github.io/v1beta1"

// A Report can be written as text for users.
type Report interface{ Text(out io.Writer) }

// A List is a Report with empty lines between its parts.
type List[T Report] []T

// Text implements Report.
func (l List[T]) Text(out io.Writer) {
	for i, each := range l {
		if i > 0 {
			fmt.Fprintln(out)
		}
		each.Text(out)
	}
}

// Print writes a report as text, or as the field of a document in JSON or YAML, which has an apiVersion and a kind.
func Print(out io.Writer, format, kind, field string, report Report) error {
	fields := map[string]any{"apiVersion": apiVersion, "kind": kind, field: report}
	switch format {
	case "json":
		encoder := json.NewEncoder(out)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", "    ")
		return encoder.Encode(fields)
	case "yaml":
		encoded, err := yaml.Marshal(fields)
		if err == nil {
			_, err = out.Write(encoded)
		}
		return err
	}
	report.Text(out)
	return nil
}

// Table writes rows below a title, which ends its own line, and headings. Cells without a heading are left out, and an empty cell
// is a dash. A table without rows is not written.
func Table(out io.Writer, title, headings string, rows [][]any) {
	if len(rows) == 0 {
		return
	}
	fmt.Fprint(out, title)
	columns := strings.Fields(headings)
	table := tabwriter.NewWriter(out, 6, 4, 3, ' ', 0) // as kubectl has them
	fmt.Fprintln(table, strings.Join(columns, "\t"))
	for _, row := range rows {
		cells := make([]string, len(columns))
		for i := range cells {
			cells[i] = cmp.Or(strings.ReplaceAll(fmt.Sprint(row[i]), "\n", " "), "-")
		}
		fmt.Fprintln(table, strings.Join(cells, "\t"))
	}
	_ = table.Flush() // as kubectl, text ignores errors of the output
}
