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

	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

// Formats besides text, which is the empty string.
const (
	Wide = "wide"
	JSON = "json"
	YAML = "yaml"
)

// Validate returns an error for an unknown format.
func Validate(format string) error {
	switch format {
	case "", Wide, JSON, YAML:
		return nil
	}
	return fmt.Errorf("--output %q: use wide, json or yaml", format)
}

// APIVersion is that of all that is written as JSON or YAML, besides objects of
// Kubernetes. Within it fields are added, and not removed or changed.
const APIVersion = "cli." + export.Domain + "/v1beta1"

// Print writes a value as JSON or YAML, with the apiVersion and a kind before
// its fields, or calls text for the other formats. The value must encode as an
// object.
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

// PrintObject writes an object of Kubernetes as JSON or YAML.
func PrintObject(out io.Writer, format string, object any) error {
	encoded, err := json.Marshal(object)
	if err != nil {
		return err
	}
	return encode(out, format, encoded)
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

// Table writes rows below headings. A heading that begins with a plus is of a
// column that only wide output has. A table without rows is not written.
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

// Age is the time between two, as kubectl shows ages; a dash where the first is
// zero.
func Age(since, now time.Time) string {
	if since.IsZero() {
		return "-"
	}
	return duration.HumanDuration(max(now.Sub(since), 0))
}

// Dash is the text, or a dash where it is empty.
func Dash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}
