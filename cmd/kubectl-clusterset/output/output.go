// SPDX-License-Identifier: Apache-2.0

// Package output prints results as text, JSON or YAML, and reports what a command waits for.
package output

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/yaml"

	"github.com/clusterset-dns/clusterset-dns/controller/state"
)

// Escaped escapes what controls a terminal: text of other clusters is shown as it is otherwise.
type Escaped struct{ io.Writer }

// Write implements io.Writer.
func (e Escaped) Write(text []byte) (int, error) {
	_, err := io.WriteString(e.Writer, state.Escape(string(text)))
	return len(text), err
}

// apiVersion is that of all JSON and YAML output. Within a version, fields are only added.
const apiVersion = "cli.clusterset-dns.github.io/v1beta1"

// Print writes fields as JSON or YAML, which also gets its apiVersion and kind, or calls text for the other formats.
func Print(out io.Writer, format, kind string, fields map[string]any, text func(out io.Writer, wide bool) error) error {
	fields["apiVersion"], fields["kind"] = apiVersion, kind
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
	return text(out, format == "wide")
}

// Section writes a table below a title. A section without rows is not written.
func Section(out io.Writer, wide bool, title, headings string, rows [][]any) error {
	if len(rows) == 0 {
		return nil
	}
	fmt.Fprintln(out, title)
	return Table(out, wide, headings, rows)
}

// Table writes rows below headings. Columns whose heading begins with a plus are for wide output only. An empty cell is a
// dash. A table without rows is not written.
func Table(out io.Writer, wide bool, headings string, rows [][]any) error {
	if len(rows) == 0 {
		return nil
	}
	columns := strings.Fields(headings)
	table := tabwriter.NewWriter(out, 6, 4, 3, ' ', 0) // as kubectl has them
	line := func(text func(i int) string) {
		var cells []string
		for i := range columns {
			if wide || columns[i][0] != '+' {
				cells = append(cells, cmp.Or(strings.ReplaceAll(text(i), "\n", " "), "-"))
			}
		}
		fmt.Fprintln(table, strings.Join(cells, "\t"))
	}
	line(func(i int) string { return strings.ReplaceAll(strings.TrimPrefix(columns[i], "+"), "_", " ") })
	for _, row := range rows {
		line(func(i int) string { return fmt.Sprint(row[i]) })
	}
	return table.Flush()
}

const (
	pollInterval = 200 * time.Millisecond
	// reminder is the interval at which an unchanged state is reported again.
	reminder = 10 * time.Second
)

// ErrTimeout is the cause of a wait that timed out.
var ErrTimeout = errors.New("timed out")

// A Teller writes one line per event.
type Teller struct {
	// Out receives progress, usually standard error; Results receives results.
	Out, Results io.Writer
	// Timeout bounds each wait.
	Timeout time.Duration
	// Interval is the poll interval of Wait; zero means 200ms.
	Interval time.Duration
}

// Did writes a result.
func (t Teller) Did(format string, args ...any) { fmt.Fprintf(t.Results, format+"\n", args...) }

// Wrote writes the result of a write, or of its dry run.
func (t Teller) Wrote(dryRun bool, format string, args ...any) {
	if dryRun {
		format += " (dry run)"
	}
	t.Did(format, args...)
}

// Say writes progress.
func (t Teller) Say(format string, args ...any) { fmt.Fprintf(t.Out, format+"\n", args...) }

// Wait polls look, once per Interval, until it returns an empty text or an
// error. The text says what is waited for; Wait reports it when it changes, and
// every ten seconds. After a timeout the error wraps ErrTimeout and has the last
// text.
func (t Teller) Wait(ctx context.Context, look func(context.Context) (string, error)) error {
	ctx, cancel := context.WithTimeoutCause(ctx, t.Timeout, ErrTimeout)
	defer cancel()
	var told string
	var toldAt time.Time
	begin := time.Now()
	err := wait.PollUntilContextCancel(ctx, cmp.Or(t.Interval, pollInterval), true, func(ctx context.Context) (bool, error) {
		waiting, err := look(ctx)
		switch {
		case err == nil && waiting == "":
			return true, nil
		case ctx.Err() != nil: // what the end cut off says nothing
			return false, nil //nolint:nilerr // The poll ends with the cause.
		case err == nil && (waiting != told || time.Since(toldAt) >= reminder):
			// The first state is reported only if it lasts.
			if time.Since(begin) >= pollInterval {
				t.Say("  … %s (%s)", waiting, time.Since(begin).Round(time.Second))
				toldAt = time.Now()
			}
			told = waiting
		}
		return false, err
	})
	if err != nil && errors.Is(context.Cause(ctx), ErrTimeout) {
		return fmt.Errorf("%w after %s: %s", ErrTimeout, t.Timeout, told)
	}
	return err
}
