// SPDX-License-Identifier: Apache-2.0

package inbox

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterset-dns/clusterset-dns/controller/relay/mailbox"
)

type (
	testInbox   = Inbox[int64, string]
	testRelease = Release[int64, string]
)

func named(name string) types.NamespacedName { return types.NamespacedName{Namespace: "n", Name: name} }

// put is the statement about a slice; its content is its counter.
func put(name, key string, counter int64) Slice[int64] {
	return Slice[int64]{
		Name: named(name), Entry: mailbox.Entry{Counter: counter}, Key: key, Content: counter,
	}
}

// beat is a heartbeat of a mailbox with the slices.
func beat(key string, counter int64, of ...Slice[int64]) Heartbeat[string] {
	var ledger mailbox.Ledger
	for _, slice := range of {
		ledger.Put(slice.Name, slice.Entry)
	}
	return Heartbeat[string]{Stamp: Stamp{key, counter}, Root: ledger.Root()}
}

// text is a release as text.
func text(release testRelease) string {
	var parts []string
	if release.Heartbeat != nil {
		parts = append(parts, fmt.Sprintf("heard %d", release.Heartbeat.Counter))
	}
	if release.Listed {
		parts = append(parts, "list")
	}
	for _, change := range release.Changes {
		if change.Deleted {
			parts = append(parts, "-"+change.Name.Name)
		} else {
			parts = append(parts, fmt.Sprintf("+%s%d", change.Name.Name, change.Content))
		}
	}
	return strings.Join(parts, " ")
}

func TestInbox(t *testing.T) {
	type inbox = *testInbox
	type step struct {
		do   func(inbox) testRelease
		want string
	}
	list := func(of ...Slice[int64]) func(inbox) testRelease {
		return func(b inbox) testRelease { return b.Begin(of) }
	}
	puts := func(slice Slice[int64]) func(inbox) testRelease {
		return func(b inbox) testRelease { return b.Put(slice) }
	}
	ends := func(name string) func(inbox) testRelease {
		return func(b inbox) testRelease { return b.Delete(named(name)) }
	}
	beats := func(counter int64, of ...Slice[int64]) func(inbox) testRelease {
		return func(b inbox) testRelease { return b.Heartbeat(beat("k", counter, of...)) }
	}
	beatsOf := func(key string, counter int64, of ...Slice[int64]) func(inbox) testRelease {
		return func(b inbox) testRelease { return b.Heartbeat(beat(key, counter, of...)) }
	}
	a1, a5, b2, c12 := put("a", "k", 1), put("a", "k", 5), put("b", "k", 2), put("c", "k", 12)
	d13 := put("d", "k", 13)
	for name, steps := range map[string][]step{
		"a list counts with a heartbeat":        {{list(a1, b2), ""}, {beats(10, a1, b2), "heard 10 list"}},
		"a heartbeat before its list":           {{beats(10, a1), ""}, {list(a1), "heard 10 list"}},
		"a list that lacks a slice":             {{list(a1), ""}, {beats(10, a1, b2), ""}, {puts(b2), "heard 10 list +b2"}},
		"a list ahead of its heartbeat":         {{list(a1, c12), ""}, {beats(10, a1), ""}, {beats(15, a1, c12), "heard 15 list"}},
		"an emptied mailbox":                    {{list(), ""}, {beats(10, a1), ""}},
		"a heartbeat counts once":               {{list(a1), ""}, {beats(10, a1), "heard 10 list"}, {beats(10, a1), ""}},
		"an older heartbeat":                    {{list(a1), ""}, {beats(10, a1), "heard 10 list"}, {beats(9, a1), ""}},
		"a new slice counts at once":            {{list(a1), ""}, {beats(10, a1), "heard 10 list"}, {puts(c12), "+c12"}, {beats(15, a1, c12), "heard 15"}},
		"a slice older than the heartbeat":      {{list(a1), ""}, {beats(10, a1), "heard 10 list"}, {puts(b2), ""}, {beats(15, a1), ""}, {beats(16, a1, b2), "heard 16 +b2"}},
		"an older state of a slice":             {{list(a5), ""}, {beats(10, a5), "heard 10 list"}, {puts(a1), ""}, {beats(15, a5), ""}, {puts(a5), "heard 15"}},
		"a deletion waits":                      {{list(a1, b2), ""}, {beats(10, a1, b2), "heard 10 list"}, {ends("b"), ""}, {beats(15, a1), "heard 15 -b"}},
		"a deletion after its heartbeat":        {{list(a1, b2), ""}, {beats(10, a1, b2), "heard 10 list"}, {beats(15, a1), ""}, {ends("b"), "heard 15 -b"}},
		"a deletion that the cluster did not":   {{list(a1, b2), ""}, {beats(10, a1, b2), "heard 10 list"}, {ends("b"), ""}, {beats(15, a1, b2), "heard 15"}, {beats(20, a1, b2), "heard 20"}, {puts(b2), ""}},
		"a heartbeat before what is shown":      {{list(a1), ""}, {beats(10, a1), "heard 10 list"}, {puts(c12), "+c12"}, {beats(11, a1), "heard 11"}},
		"a change that the relay withholds":     {{list(a1), ""}, {beats(10, a1), "heard 10 list"}, {puts(c12), "+c12"}, {beats(20, a1), ""}, {ends("c"), "heard 20 -c"}},
		"a heartbeat of the past of a deletion": {{list(a1), ""}, {beats(10, a1), "heard 10 list"}, {puts(c12), "+c12"}, {ends("c"), ""}, {beats(11, a1), "heard 11"}, {beats(20, a1), "heard 20 -c"}},
		"a slice that comes back":               {{list(a1, b2), ""}, {beats(10, a1, b2), "heard 10 list"}, {ends("b"), ""}, {puts(b2), ""}, {beats(15, a1, b2), "heard 15"}},
		"two changes, one heartbeat":            {{list(), ""}, {beats(10), "heard 10 list"}, {puts(c12), "+c12"}, {puts(d13), "+d13"}, {beats(20, c12, d13), "heard 20"}},
		"another key": {
			{list(a1), ""},
			{beats(10, a1), "heard 10 list"},
			{puts(put("a", "l", 3)), ""},
			{beatsOf("l", 4, put("a", "l", 3)), "heard 4 +a3"},
			{puts(put("b", "l", 6)), "+b6"},
			{beats(11, put("a", "l", 3), put("b", "l", 6)), "heard 11"},
		},
		"the former key, below the new one": {
			{list(a1), ""},
			{beats(10, a1), "heard 10 list"},
			{beatsOf("l", 20, a1), "heard 20"},
			{beats(15, a1), ""},
		},
		"end of what was not shown": {{list(a1), ""}, {ends("b"), ""}, {beats(10, a1), "heard 10 list"}, {ends("b"), ""}},
	} {
		t.Run(name, func(t *testing.T) {
			b := New[int64, string](&Heard{})
			for i, step := range steps {
				if got := text(step.do(b)); got != step.want {
					t.Fatalf("step %d: got %q, want %q", i, got, step.want)
				}
			}
		})
	}
}

// TestAnotherInbox: what one relay showed bounds what another one may show.
func TestAnotherInbox(t *testing.T) {
	a1, c12 := put("a", "k", 1), put("c", "k", 12)
	heard := &Heard{}
	first := New[int64, string](heard)
	first.Begin([]Slice[int64]{a1})
	first.Heartbeat(beat("k", 10, a1))
	for _, test := range []struct {
		what    string
		list    []Slice[int64]
		counter int64
		want    string
	}{
		{"behind", []Slice[int64]{a1}, 9, ""},
		{"equal", []Slice[int64]{a1}, 10, "heard 10 list"},
		{"ahead", []Slice[int64]{a1}, 11, "heard 11 list"},
	} {
		next := *heard
		next.heartbeats = append([]Stamp(nil), heard.heartbeats...)
		b := New[int64, string](&next)
		b.Begin(test.list)
		if got := text(b.Heartbeat(beat("k", test.counter, test.list...))); got != test.want {
			t.Errorf("%s: got %q, want %q", test.what, got, test.want)
		}
	}
	if got := text(first.Put(c12)); got != "+c12" {
		t.Fatalf("got %q", got)
	}
	b := New[int64, string](heard)
	b.Begin([]Slice[int64]{a1})
	if got := text(b.Heartbeat(beat("k", 11, a1))); got != "" {
		t.Errorf("goes back behind a released slice: %q", got)
	}
	if got := text(b.Heartbeat(beat("k", 13, a1))); got != "heard 13 list" {
		t.Errorf("got %q", got)
	}
	heard.Directly(100, "k", "known")
	b = New[int64, string](heard)
	b.Begin([]Slice[int64]{a1})
	if got := text(b.Heartbeat(beat("k", 100, a1))) + text(b.Heartbeat(beat("known", 99, a1))); got != "" {
		t.Errorf("goes back behind what was read directly: %q", got)
	}
	if got := text(b.Heartbeat(beat("k", 101, a1))); got != "heard 101 list" {
		t.Errorf("got %q", got)
	}
}

func TestHeardText(t *testing.T) {
	heard := &Heard{}
	heard.counted(Stamp{"a", 5})
	heard.counted(Stamp{"b", 7})
	heard.released(Stamp{"b", 9})
	if got := heard.String(); got != "b:9,a:5" {
		t.Errorf("got %q", got)
	}
	again, err := ParseHeard(heard.String())
	if err != nil || again.String() != heard.String() {
		t.Errorf("got %v, %v", again, err)
	}
	heard.Keep(func(key string) bool { return key == "a" })
	if got := heard.String(); got != "a:5" {
		t.Errorf("got %q", got)
	}
	if !heard.Later(Stamp{"b", 1}) {
		t.Error("a key that returns does not begin anew")
	}
	for _, text := range []string{
		":5", "a", "a:", "a:-1", "a:+1", "a:0", "a:1,", "a:1,a:2", "direct/:1", "direct/a:0", "direct/a:1,direct/a:2",
		strings.Repeat("a:1,", 99),
	} {
		if heard, err := ParseHeard(text); err == nil {
			t.Errorf("%q is %v", text, heard)
		}
	}
}

// TestTheNextLeaderAfterDirectReading: what was read directly bounds what a relay may show to the next leader, too. A
// key that is added later begins anew.
func TestTheNextLeaderAfterDirectReading(t *testing.T) {
	heard := &Heard{}
	heard.counted(Stamp{"a", 5})
	heard.Directly(100, "a", "b")
	if got := heard.String(); got != "a:5,direct/a:100,direct/b:100" {
		t.Errorf("got %q", got)
	}
	next, err := ParseHeard(heard.String())
	if err != nil {
		t.Fatal(err)
	}
	for stamp, want := range map[Stamp]bool{
		{"a", 100}: false, {"a", 101}: true, {"b", 100}: false, {"b", 101}: true, {"c", 1}: true,
	} {
		if got := next.Later(stamp); got != want {
			t.Errorf("%v is later: %v", stamp, got)
		}
	}
	next.Directly(50, "b") // the clock was ahead
	if !next.Later(Stamp{"b", 51}) || next.Later(Stamp{"b", 50}) {
		t.Errorf("after the clock was corrected: %s", next.String())
	}
	next.Keep(func(key string) bool { return key == "a" })
	if got := next.String(); got != "a:5" {
		t.Errorf("kept %q", got)
	}
}

// TestMerge: what was heard and what a former leader heard, in any order, bound what counts.
func TestMerge(t *testing.T) {
	former, err := ParseHeard("b:9,a:5,direct/a:7")
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ heard, want string }{
		{"", "b:9,a:5,direct/a:7"},
		{"a:4", "a:5,b:9,direct/a:7"},
		{"a:6,direct/a:8,direct/c:3", "a:6,b:9,direct/a:8,direct/c:3"},
	} {
		heard, err := ParseHeard(test.heard)
		if err != nil {
			t.Fatal(err)
		}
		heard.Merge(former)
		if got := heard.String(); got != test.want {
			t.Errorf("%q: got %q, want %q", test.heard, got, test.want)
		}
	}
}

// FuzzParseHeard: a text that is taken is written as it was read.
func FuzzParseHeard(f *testing.F) {
	f.Add("b:9,a:5")
	f.Add("b:9,a:5,direct/b:7")
	f.Add("direct/a:1,direct/a:1")
	f.Add("")
	f.Fuzz(func(t *testing.T, text string) {
		heard, err := ParseHeard(text)
		if err != nil {
			return
		}
		if again, err := ParseHeard(heard.String()); err != nil || again.String() != heard.String() {
			t.Errorf("%q: %v, %v", text, again, err)
		}
	})
}
