// SPDX-License-Identifier: Apache-2.0

// Package output prints results as text, JSON or YAML.
package output

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/yaml"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/names"
	"github.com/clusterset-dns/clusterset-dns/controller/state"
)

// Formats other than text, which is the empty string.
const (
	Wide = "wide"
	JSON = "json"
	YAML = "yaml"
)

// Escaped escapes what controls a terminal: text of other clusters is shown as it is otherwise.
type Escaped struct{ io.Writer }

// Write implements io.Writer.
func (e Escaped) Write(text []byte) (int, error) {
	_, err := io.WriteString(e.Writer, state.Escape(string(text)))
	return len(text), err
}

// Validate returns an error for an unknown format.
func Validate(format string) error {
	switch format {
	case "", Wide, JSON, YAML:
		return nil
	}
	return fmt.Errorf("--output %q: use wide, json or yaml", format)
}

// APIVersion is that of all JSON and YAML output other than Kubernetes objects.
// Within a version, fields are only added.
const APIVersion = "cli." + names.Domain + "/v1beta1"

// Print writes a value as JSON or YAML with its apiVersion and kind, or calls
// text for the other formats. The value must encode as an object.
func Print(out io.Writer, format, kind string, value any, text func(out io.Writer, wide bool) error) error {
	if format != JSON && format != YAML {
		return text(out, format == Wide)
	}
	var fields bytes.Buffer
	encoder := json.NewEncoder(&fields)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return err
	}
	head, rest := fmt.Sprintf(`{"apiVersion":%q,"kind":%q,`, APIVersion, kind),
		bytes.TrimPrefix(fields.Bytes(), []byte("{"))
	return encode(out, format, append([]byte(head), rest...))
}

func encode(out io.Writer, format string, text []byte) error {
	var encoded bytes.Buffer
	if err := json.Indent(&encoded, text, "", "    "); err != nil {
		return err
	}
	written := append(bytes.TrimSpace(encoded.Bytes()), '\n')
	if format == YAML {
		var err error
		if written, err = yaml.JSONToYAML(text); err != nil {
			return err
		}
	}
	_, err := out.Write(written)
	return err
}

// Table writes rows below headings. Columns whose heading begins with a plus are
// for wide output only. A table without rows is not written.
func Table(out io.Writer, wide bool, headings string, rows [][]any) error {
	if len(rows) == 0 {
		return nil
	}
	var lines [][]string
	var shown []bool
	var names []string
	for heading := range strings.FieldsSeq(headings) {
		name, extra := strings.CutPrefix(heading, "+")
		shown = append(shown, wide || !extra)
		names = append(names, strings.ReplaceAll(strings.ToUpper(name), "_", " "))
	}
	lines = append(lines, names)
	for _, row := range rows {
		var line []string
		for _, cell := range row {
			line = append(line, fmt.Sprint(cell))
		}
		lines = append(lines, line)
	}
	table := tabwriter.NewWriter(out, 6, 4, 3, ' ', 0) // as kubectl has them
	for _, line := range lines {
		var cells []string
		for i, cell := range line {
			if shown[i] {
				cells = append(cells, strings.ReplaceAll(cell, "\n", " "))
			}
		}
		fmt.Fprintln(table, strings.Join(cells, "\t"))
	}
	return table.Flush()
}

// Age is the time since, as kubectl prints ages; a dash if since is zero.
func Age(since, now time.Time) string {
	if since.IsZero() {
		return "-"
	}
	return duration.HumanDuration(max(now.Sub(since), 0))
}

// Dash is the text, or a dash if it is empty.
func Dash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}
