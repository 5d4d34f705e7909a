// SPDX-License-Identifier: Apache-2.0

package kubectl

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/clusterset-dns/clusterset-dns/controller/state"
)

// A fault is something that is broken on purpose.
type fault struct {
	name string
	// round names the faults that are there at once, because they touch nothing
	// common and their hints do not fix each other. Without one a fault is alone.
	round string
	// says is what check has to say of it, each as the check and the context. What
	// these hints say is done, one after the other, until nothing is wrong.
	says []string
	// also is what check may say besides, sooner or later, because of that. All else it must not say.
	also []string
	// shell breaks it as an administrator could, do if that takes more.
	shell string
	do    func(*testing.T, *bed)
	// hand does what a hint says that has this text in it, and that nobody can run here.
	hand map[string]func(*testing.T, *bed)
	// fill are the values of placeholders in hints.
	fill map[string]string
	// which is part of the command that is run of a hint that is a sentence.
	which string
	// after cleans up what is not wrong.
	after string
}

// faults are all of them: those that controllers find, whose hints are commands. The unit tests of check have the others.
func faults() []fault {
	return slices.Concat(memberFaults, serviceFaults)
}

// rounds are the faults in the order in which they first come, those of a round together.
func rounds() [][]fault {
	var all [][]fault
	for _, f := range faults() {
		at := slices.IndexFunc(all, func(round []fault) bool { return f.round != "" && round[0].round == f.round })
		if at < 0 {
			all = append(all, []fault{f})
		} else {
			all[at] = append(all[at], f)
		}
	}
	return all
}

// testCheck breaks what is checked, one round after the other: check says so, and what it says fixes it.
func testCheck(t *testing.T, b *bed) {
	b.namespace(t, "checked", b.all()...)
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "held"} {
		b.service(t, b.west, "checked", name, 80, "10.65.0.10")
	}
	b.unbroken(t)
	for _, round := range rounds() {
		if round[0].round == cut {
			continue // takes long: testStale has a look at it, too
		}
		t.Run(cmp.Or(round[0].round, round[0].name), func(t *testing.T) { b.breaks(t, round) })
	}
}

// breaks breaks something, has a look meanwhile, and follows what check says until nothing is wrong.
func (b *bed) breaks(t *testing.T, round []fault, meanwhile ...func()) {
	var says, also []string
	for _, f := range round {
		says, also = append(says, f.says...), append(also, f.also...)
		if f.shell != "" {
			b.shell(t, f.shell)
		}
		if f.do != nil {
			f.do(t, b)
		}
	}
	for _, look := range meanwhile {
		look()
	}
	var told []finding
	eventually(t, "check to say "+strings.Join(says, ", "), func() error {
		told = b.check(t)
		got := texts(told)
		missing := slices.DeleteFunc(slices.Clone(says), func(said string) bool { return slices.Contains(got, said) })
		surplus := slices.DeleteFunc(got,
			func(said string) bool { return slices.Contains(says, said) || slices.Contains(also, said) })
		if len(missing)+len(surplus) > 0 {
			return fmt.Errorf("it says %+v: %v too little, %v too much", told, missing, surplus)
		}
		return nil
	})
	// one that fixes nothing may come back in other words
	for hints := 0; len(told) > 0 && hints < 2*len(says); hints++ {
		var followed []finding
		eventually(t, "a hint to follow, or nothing to be wrong", func() error {
			if followed = b.followRound(t, round, told); len(followed) > 0 || len(told) == 0 {
				return nil
			}
			before := told // what was done before is about to fix that
			told = b.check(t)
			return fmt.Errorf("it said %+v", before)
		})
		eventually(t, fmt.Sprintf("hints to fix %+v", followed), func() error {
			told = b.check(t)
			for _, now := range told {
				if slices.ContainsFunc(followed,
					func(then finding) bool { return now.text() == then.text() && now.Fix == then.Fix }) {
					return fmt.Errorf("it still says %+v", told)
				}
			}
			return nil
		})
	}
	if len(told) > 0 {
		b.unbroken(t)
	}
	for _, f := range round {
		if f.after != "" {
			b.shell(t, f.after)
		}
	}
}

// followRound follows one hint for each fault that is still there, the first of what the fault says, and returns what
// it is to fix.
func (b *bed) followRound(t *testing.T, round []fault, told []finding) []finding {
	t.Helper()
	var followed []finding
	for _, f := range round {
		for _, said := range f.says {
			at := slices.IndexFunc(told, func(each finding) bool { return each.text() == said })
			if at < 0 {
				continue
			}
			each := told[at]
			if slices.ContainsFunc(followed, func(other finding) bool { return other.Fix == each.Fix }) {
				t.Fatalf("%s: %q fixes another fault, too: let it have a round of its own", f.name, each.Fix)
			}
			t.Logf("%s: %s: %s\n> %s", f.name, said, each.What, each.Fix)
			b.follow(t, f, each.Fix)
			followed = append(followed, each)
			break
		}
	}
	return followed
}

var (
	placeholder = regexp.MustCompile(`<[^<>]+>`)
	sentence    = regexp.MustCompile(`^[A-Z].*\.($|\n)`)
	quoted      = regexp.MustCompile("`(kubectl [^`]*)`")
)

// follow does what a hint says: it runs the command as it stands, but for its placeholders, or the one of those in a
// sentence that is meant. What is left is done by hand.
func (b *bed) follow(t *testing.T, f fault, hint string) {
	t.Helper()
	if !strings.HasPrefix(hint, "kubectl ") && !strings.HasPrefix(hint, "helm ") && !sentence.MatchString(hint) {
		t.Fatalf("%q is neither a command nor a sentence", hint)
	}
	for text, do := range f.hand {
		if strings.Contains(hint, text) {
			do(t, b)
			return
		}
	}
	command := hint
	for _, at := range quoted.FindAllStringSubmatch(hint, -1) {
		if f.which != "" && strings.Contains(at[1], f.which) {
			command = at[1]
		}
	}
	if strings.HasPrefix(command, "kubectl ") {
		command = strings.ReplaceAll(command, " deploy/", " ../../deploy/") // as in the root directory
		b.shell(t, placeholder.ReplaceAllStringFunc(command, func(name string) string {
			value, known := f.fill[name]
			if !known {
				t.Fatalf("%s: nobody knows %s", hint, name)
			}
			return value
		}))
		return
	}
	t.Fatalf("nobody can do what %q says", hint)
}

// unbroken waits until nothing is wrong.
func (b *bed) unbroken(t *testing.T) {
	t.Helper()
	eventually(t, "nothing to be wrong", func() error {
		if told := b.check(t); len(told) > 0 {
			return fmt.Errorf("%+v", told)
		}
		return nil
	})
}

type finding struct{ Check, Context, Result, What, Fix string }

func (f finding) text() string { return f.Check + " " + f.Context }

// texts are the checks and contexts of findings, sorted, each once.
func texts(findings []finding) []string {
	var out []string
	for _, f := range findings {
		out = append(out, f.text())
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// check runs all checks, and returns what is wrong, or may be.
func (b *bed) check(t *testing.T, more ...string) []finding {
	t.Helper()
	got := b.run(t,
		slices.Concat([]string{"check", "--contexts", strings.Join(b.contexts(), ","), "-o", "json"}, b.dnsFlags(), more)...)
	var list struct{ Findings []finding }
	if err := json.Unmarshal([]byte(got.out), &list); err != nil {
		t.Fatalf("%v: %+v", err, got)
	}
	failed := slices.ContainsFunc(list.Findings, func(f finding) bool { return f.Result == state.Failed })
	if failed != (got.status == 3) {
		t.Fatalf("exit status %d: %+v", got.status, got)
	}
	return slices.DeleteFunc(list.Findings, func(f finding) bool {
		if wrong := f.Result == state.Failed || f.Result == state.Warning; wrong != (f.What != "") ||
			wrong && f.Fix == "" {
			t.Errorf("%+v", f)
		}
		return f.What == ""
	})
}
