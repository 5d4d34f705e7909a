// SPDX-License-Identifier: Apache-2.0

package quickstart

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/clusterset-dns/clusterset-dns/controller/state"
)

// A round has simultaneous faults in a cluster set: they affect different objects, and a fix of one does not fix another.
type round struct {
	name, commands string
	// told maps the expected findings (check and context) to the fix in the script. also has findings that may occur in
	// addition.
	told map[string]string
	also map[string]bool
}

// rounds parses testdata/faults.txt, which documents its marks.
func rounds(t *testing.T) []round {
	text, err := os.ReadFile(filepath.Join("testdata", "faults.txt"))
	must(t, err)
	parts := strings.Split(string(text), "\n== ")
	var all []round
	for _, part := range parts[1:] {
		name, lines, _ := strings.Cut(part, "\n")
		r := round{name: name, commands: parts[0] + "\n", told: map[string]string{}, also: map[string]bool{}}
		for line := range strings.Lines(lines) {
			switch mark, rest, _ := strings.Cut(strings.TrimSpace(line), " "); mark {
			case ">":
				said, fix, _ := strings.Cut(rest, ": ")
				r.told[said] = fix
			case "~":
				r.also[rest] = true
			default:
				r.commands += line
			}
		}
		all = append(all, r)
	}
	return all
}

// testFaults breaks the cluster set in rounds. In each, check must report the faults, and its hints must fix them.
func testFaults(t *testing.T, b *bed) {
	for _, r := range rounds(t) {
		whole := t.Run(r.name, func(t *testing.T) {
			b.run(t, r.commands)
			var told []finding
			until(t, "check to tell of all faults and of nothing else", func() error {
				told = b.findings(t)
				missing := maps.Clone(r.told)
				surplus := slices.DeleteFunc(slices.Clone(told), func(f finding) bool {
					_, known := r.told[f.text()]
					delete(missing, f.text())
					return known || r.also[f.text()]
				})
				if len(missing)+len(surplus) > 0 {
					return fmt.Errorf("missing %v, surplus %+v", missing, surplus)
				}
				return nil
			})
			if r.name == "path" {
				b.run(t, "until kubectl clusterset status --contexts east | grep ' stale '; do sleep 1; done")
				b.explains(t)
			}
			followed := map[string]bool{}
			for range 2*len(r.told) + 1 { // a hint may lead to another finding
				for _, f := range told {
					if how, known := r.told[f.text()]; known && !followed[f.Fix] {
						t.Logf("%s: %s\n> %s", f.text(), f.What, f.Fix)
						followed[f.Fix] = true
						b.fix(t, f.Fix, how)
					}
				}
				until(t, "what the hints say to fix it", func() error {
					if told = b.findings(t); slices.ContainsFunc(told, func(f finding) bool {
						_, known := r.told[f.text()]
						return followed[f.Fix] || !known
					}) {
						return fmt.Errorf("check says %+v", told)
					}
					return nil
				})
				if len(told) == 0 {
					return
				}
			}
			t.Errorf("what the hints say does not fix %+v", told)
		})
		if !whole {
			return // the next round would find the remaining faults
		}
	}
	b.run(t, "for cluster in east west north; do kubectl --context $cluster delete namespace checked elsewhere; done")
}

// until waits until check, which runs commands, returns nil.
func until(t testing.TB, what string, check func() error) {
	eventually(t, what, func(context.Context) error { return check() })
}

var (
	placeholder = regexp.MustCompile(`<[^<>]+>`)
	sentence    = regexp.MustCompile(`^[A-Z].*\.($|\n)`)
	quoted      = regexp.MustCompile("`(kubectl [^`]*)`")
)

// values are the values of placeholders in hints.
var values = map[string]string{
	"<ranges of its pods>": "0.0.0.0/0,::/0", "<zone of the node>": "north-b",
	"<integer from -1000 to 1000>": "0", "<value of clusterset-dns.github.io/cidrs>": "0.0.0.0/0,::/0",
	"<id of the cluster whose API server it names>": "east",
}

// fix follows a hint: it runs the hint if it is a command, the command in it that contains the text how, or the command
// in how, which a human would derive from the hint.
func (b *bed) fix(t *testing.T, hint, how string) {
	t.Helper()
	command, human := strings.CutPrefix(how, "$ ")
	switch {
	case !strings.HasPrefix(hint, "kubectl ") && !sentence.MatchString(hint):
		t.Fatalf("%q is neither a command nor a sentence", hint)
	case human:
	case strings.HasPrefix(hint, "kubectl "):
		command = hint
	case sentence.MatchString(hint):
		for _, at := range quoted.FindAllStringSubmatch(hint, -1) {
			if strings.Contains(at[1], how) {
				command = at[1]
			}
		}
	}
	for _, c := range b.clusters {
		command = strings.ReplaceAll(command, c.Name()+"=<address of the API server>", c.Name()+"="+b.servers[c.Name()])
	}
	command = placeholder.ReplaceAllStringFunc(command, func(name string) string { return values[name] })
	if !human && !strings.HasPrefix(command, "kubectl ") {
		t.Fatalf("nobody can do what %q says", hint)
	}
	b.run(t, command)
}

// A finding is a problem, or a possible problem, that check reports.
type finding struct{ Check, Context, Result, What, Fix string }

func (f finding) text() string { return f.Check + " " + f.Context }

// findings runs all checks, and returns what they report.
func (b *bed) findings(t testing.TB) []finding {
	t.Helper()
	output, _ := b.quietly(t, "kubectl clusterset check --contexts east,west,north -o json && echo 0 || echo $?")
	var report struct{ Findings []finding }
	var status int
	decoder := json.NewDecoder(strings.NewReader(output))
	must(t, errors.Join(decoder.Decode(&report), decoder.Decode(&status)))
	if failed := slices.ContainsFunc(report.Findings, func(f finding) bool { return f.Result == state.Failed }); failed != (status == 3) {
		t.Fatalf("exit status %d: %s", status, output)
	}
	return slices.DeleteFunc(report.Findings, func(f finding) bool {
		if wrong := f.Result == state.Failed || f.Result == state.Warning; wrong != (f.What != "") || wrong && f.Fix == "" {
			t.Errorf("%+v", f)
		}
		return f.What == ""
	})
}

// check asserts that the checks report no problems.
func (b *bed) check(t testing.TB) {
	t.Helper()
	if told := b.findings(t); len(told) > 0 {
		t.Errorf("something is wrong: %+v", told)
	}
}

// variable matches text that differs between two runs of explain.
var variable = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ|coredns-\w+-\w+|10\.16\d\.\d+\.\d+| {3,}| +\n`)

// explains waits until the explanation of checked/web, with the stale cluster west, is as README.md shows it for shop/web.
func (b *bed) explains(t *testing.T) {
	const command = "kubectl clusterset explain shop/web --contexts east"
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	must(t, err)
	_, shown, _ := strings.Cut(string(readme), "$ "+command+"\n")
	shown, _, _ = strings.Cut(shown, "```")
	ours := strings.NewReplacer("shop/web", "checked/web", "web.shop.svc", "web.checked.svc")
	want := variable.ReplaceAllString(ours.Replace(shown), "…")
	until(t, "the explanation", func() error {
		if got := variable.ReplaceAllString(b.run(t, ours.Replace(command)), "…"); got != want {
			return fmt.Errorf("got\n%s\nwant\n%s", got, want)
		}
		return nil
	})
}
