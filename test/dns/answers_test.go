// SPDX-License-Identifier: Apache-2.0

package dns

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var rewrite = flag.Bool("update", false, "write what is answered into ../interop")

// same is the answer of the stock server where it is that of ours.
const same = "="

// answersFile has the answers for the objects that an implementation writes into an importing cluster. Its lines:
//
//	corefile: OPTION                                   from here on, our plugin has this option
//	COLUMN | NAME.NAMESPACE TYPE | OURS | STOCK | NOTE  a query; names lack .svc.clusterset.local., SRV priority and weight
//	delete: RESOURCE NAMESPACE/NAME...                  objects to delete
//
// docs/interop.md tells the differences: review it with what -update writes.
type answersFile struct {
	path  string
	lines []answersLine
}

// answersLine is a line of such a file. What is not a question nor objects to delete is kept as it is.
type answersLine struct {
	text   string
	option string
	delete []string

	column, question, ours, stock, note string
}

func readAnswers(t *testing.T, system string) *answersFile {
	t.Helper()
	f := &answersFile{path: filepath.Join("..", "interop", system, "answers.txt")}
	text, err := os.ReadFile(f.path)
	must(t, err)
	option := ""
	for line := range strings.SplitSeq(strings.TrimSuffix(string(text), "\n"), "\n") {
		l := answersLine{text: line}
		if rest, ok := strings.CutPrefix(line, "corefile: "); ok {
			option = rest
		}
		if rest, ok := strings.CutPrefix(line, "delete: "); ok {
			l.delete = strings.Fields(rest)
		}
		l.option = option
		if fields := strings.Split(line, "|"); len(fields) == 5 {
			for i, into := range []*string{&l.column, &l.question, &l.ours, &l.stock, &l.note} {
				*into = strings.TrimSpace(fields[i])
			}
			if l.stock == same {
				l.stock = l.ours
			}
		}
		f.lines = append(f.lines, l)
	}
	return f
}

// update writes the file anew where that was asked for.
func (f *answersFile) update(t *testing.T) {
	t.Helper()
	if !*rewrite {
		return
	}
	var b strings.Builder
	for _, l := range f.lines {
		if l.question == "" {
			b.WriteString(l.text + "\n")
			continue
		}
		stock := l.stock
		if stock == l.ours {
			stock = same
		}
		b.WriteString(
			strings.TrimSpace(strings.Join([]string{l.column, l.question, l.ours, stock, l.note}, " | ")) + "\n")
	}
	must(t, os.WriteFile(f.path, []byte(b.String()), 0o600))
}
