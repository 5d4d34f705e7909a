// SPDX-License-Identifier: Apache-2.0

// Package output prints what was found, for people and for programs.
package output

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/yaml"
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

// Print writes a value as JSON or YAML, or calls text for the others.
func Print(out io.Writer, format string, value any, text func(out io.Writer, wide bool) error) error {
	switch format {
	case JSON:
		encoder := json.NewEncoder(out)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", "    ")
		return encoder.Encode(value)
	case YAML:
		encoded, err := yaml.Marshal(value)
		if err == nil {
			_, err = out.Write(encoded)
		}
		return err
	}
	return text(out, format == Wide)
}

// Table writes rows below headings. A heading that begins with a plus is of a
// column that only wide output has. A table without rows is not written.
func Table(out io.Writer, wide bool, headings string, rows [][]any) error {
	if len(rows) == 0 {
		return nil
	}
	table := &metav1.Table{}
	for heading := range strings.FieldsSeq(headings) {
		name, extra := strings.CutPrefix(heading, "+")
		column := metav1.TableColumnDefinition{Name: strings.ReplaceAll(name, "_", " "), Type: "string"}
		if extra {
			column.Priority = 1
		}
		table.ColumnDefinitions = append(table.ColumnDefinitions, column)
	}
	for _, row := range rows {
		table.Rows = append(table.Rows, metav1.TableRow{Cells: row})
	}
	return printers.NewTablePrinter(printers.PrintOptions{Wide: wide}).PrintObj(table, out)
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
