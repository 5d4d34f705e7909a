// SPDX-License-Identifier: Apache-2.0

package memberstate

import (
	"fmt"
	"testing"

	"github.com/clusterset-dns/clusterset-dns/controller/liveness"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/controller/scope"
)

func inRegion(name string) string { return fmt.Sprintf("{%q:%q}", "region", name) }

// says reads a heartbeat that was not renewed, with properties.
func (l *lookout) says(cluster, properties string) {
	l.properties[cluster] = properties
	l.LeaseRead(l.of.Get(cluster), member.Heartbeat{KubeSystemUID: "uid-of-" + cluster, Cluster: cluster, Properties: properties}, false)
}

// TestDescription: properties of a member count when they are accepted, and its set at once. Invalid properties change nothing. A
// member that sends none any more stays in its set.
func TestDescription(t *testing.T) {
	const red, blue = `{"clusterset.k8s.io":"red"}`, `{"clusterset.k8s.io":"blue"}`
	l := newLookout(t, nil, "west")
	l.SetLocal("red", "")
	for _, step := range []struct{ says, accepted, set string }{
		{"", "", ""},
		{"{}", "{}", ""},
		{red, red, "red"},
		{"{", red, "red"},
		{blue, red, "blue"},
		{"{", red, "blue"},
		{"", red, "blue"},
		{inRegion("eu"), inRegion("eu"), ""},
	} {
		l.says("west", step.says)
		if is := l.Of("west"); is.accepted != step.accepted || is.set != step.set {
			t.Errorf("%q: accepted is %q in set %q", step.says, is.accepted, is.set)
		}
	}
}

// TestProperties: the properties of a quarantined member do not count. Properties outlast a restart, and are unknown again if
// the member sends none.
func TestProperties(t *testing.T) {
	l := newLookout(t, nil, "north", "west")
	region := func(what, want, told string) {
		t.Helper()
		if got := l.Properties("west")["region"]; got != want {
			t.Errorf("%s: west is in %q, want %q", what, got, want)
		}
		if got := fmt.Sprint(l.told); got != told {
			t.Errorf("%s: told of %s, want %s", what, got, told)
		}
		l.told = nil
	}
	l.pass(60, "north", "west")
	if got := l.Properties("west"); got != nil {
		t.Errorf("got %v before west said anything", got)
	}
	l.says("west", inRegion("eu"))
	region("it says where it is", "eu", "[west]")
	l.pass(60, "north", "west")
	for uid, holder := range map[string]string{"another": "west", "uid-of-west": "another"} {
		l.properties["west"] = inRegion("us")
		l.hears("west", uid, holder)
		l.told = nil
		l.pass(60, "north")
		l.hears("west", uid, holder)
		region("another cluster in its place", "eu", "[]")
	}

	l = newLookout(t, wasLed(l.wanted()["west"].annotations), "north", "west")
	l.pass(600, "north")
	region("after a restart while it is silent", "eu", "[west]")
	if state := l.Verdict("west").State; state != liveness.Stale {
		t.Errorf("after a restart, west is %v", state)
	}
	silent := newLookout(t, wasLed(l.wanted()["west"].annotations), "west")
	if silent.pass(5, "west"); silent.Properties("west") != nil {
		t.Error("after a restart, the properties are known of a member that says none any more")
	}
	l.properties["west"] = inRegion("eu")
	l.pass(300, "north", "west")
	for _, says := range []string{"{}", ""} {
		l.pass(60, "north", "west")
		l.told = nil
		l.says("west", says)
		region("it has none any more", "", "[west]")
		kept := l.wanted()["west"].annotations[scope.PropertiesAnnotation]
		if known := l.Properties("west") != nil; known != (says != "") || kept != says {
			t.Errorf("%q: the properties are known: %t, and the Lease has %q", says, known, kept)
		}
	}
}
