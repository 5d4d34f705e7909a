// SPDX-License-Identifier: Apache-2.0

package memberstate

import (
	"fmt"
	"testing"

	"k8s.io/client-go/kubernetes/fake"

	"github.com/clusterset-dns/clusterset-dns/controller/liveness"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/controller/scope"
)

func inRegion(name string) string { return fmt.Sprintf("{%q:%q}", "region", name) }

// says reads a heartbeat that was not renewed, with properties.
func (l *lookout) says(cluster, properties string) {
	l.properties[cluster] = properties
	l.LeaseRead(cluster, member.Heartbeat{KubeSystemUID: "uid-of-" + cluster, Cluster: cluster, Properties: properties}, false)
}

// TestProperties plays what a member says of itself, and restarts the reader while the member is silent.
func TestProperties(t *testing.T) {
	l := newLookout(t, nil, "north", "west")
	region := func(want, told string) {
		t.Helper()
		if got := l.Properties("west")["region"]; got != want {
			t.Errorf("west is in %q, want %q", got, want)
		}
		if got := fmt.Sprint(l.told); got != told {
			t.Errorf("told of %s, want %s", got, told)
		}
		l.told = nil
	}
	region("", "[]")
	l.pass(60, "north", "west")
	if got := l.Properties("west"); got != nil {
		t.Errorf("got %v before west said anything", got)
	}
	l.says("west", "")
	region("", "[]")
	l.says("west", inRegion("eu"))
	region("eu", "[west]")
	l.pass(60, "north", "west")
	region("eu", "[]")
	l.pass(60, "north", "west")
	l.says("west", "{") // invalid
	region("eu", "[]")
	l.says("nobody", inRegion("eu"))
	if got := l.Properties("nobody"); got != nil {
		t.Errorf("got %v of a cluster that is no member", got)
	}

	// Another cluster in its place is not believed.
	l.hears("west", "another", "west")
	l.told, l.properties["west"] = nil, inRegion("us")
	l.hears("west", "another", "west")
	region("eu", "[]")
	l.hears("west", "uid-of-west", "another")
	l.told, l.properties["west"] = nil, inRegion("asia")
	l.hears("west", "uid-of-west", "another")
	region("eu", "[]")

	client := fake.NewClientset()
	leases, err := NewLeases(t.Context(), client, "system", l.Tracker)
	if err != nil {
		t.Fatal(err)
	}
	if err := leases.write(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := NewLeases(t.Context(), client, "system", l.Tracker); err != nil {
		t.Fatal(err)
	}
	again := newLookout(t, l.left, "north", "west")
	again.pass(600, "north")
	if got := again.Properties("west")["region"]; got != "eu" || again.Verdict("west").State != liveness.Stale {
		t.Errorf("after a restart, west is %v in %q", again.Verdict("west").State, got)
	}
	again.properties["west"] = inRegion("eu")
	again.pass(300, "north", "west")
	again.told = nil
	again.pass(60, "north", "west")
	again.says("west", "{}")
	if got := again.Properties("west"); got == nil || len(got) > 0 || fmt.Sprint(again.told) != "[west]" {
		t.Errorf("got %v, told of %v", got, again.told)
	}
	if lease := again.lease("west"); lease.Annotations[scope.PropertiesAnnotation] != "{}" {
		t.Errorf("the Lease has %v", lease.Annotations)
	}

	// A controller of the version before says nothing: the properties are unknown, also after a restart.
	again.pass(60, "north", "west")
	again.told = nil
	again.says("west", "")
	if got := again.Properties("west"); got != nil || fmt.Sprint(again.told) != "[west]" {
		t.Errorf("of a controller that says nothing: got %v, told of %v", got, again.told)
	}
	if _, found := again.lease("west").Annotations[scope.PropertiesAnnotation]; found {
		t.Error("the Lease has the properties of a controller that says nothing")
	}
}

// TestUnknownProperties: a controller that says nothing of its cluster, because it is older, is believed at most once a
// minute, too, and does not leave another cluster set that way.
func TestUnknownProperties(t *testing.T) {
	l := newLookout(t, nil, "north", "west")
	l.pass(60, "north", "west")
	l.told = nil
	for range 10 {
		l.pass(60, "north", "west")
		for range 10 {
			l.says("west", "")
			l.says("west", inRegion("eu"))
		}
	}
	if len(l.told) > 11 {
		t.Errorf("told %d times in ten minutes", len(l.told))
	}
	l.SetClusterSet("blue")
	l.pass(120, "north", "west")
	l.says("west", `{"clusterset.k8s.io":"red"}`)
	l.pass(120, "north", "west")
	l.says("west", "")
	l.pass(120, "north", "west")
	if got := l.Verdict("west").Reason; got != liveness.OtherClusterSet {
		t.Errorf("a member of another set, after a downgrade: %v", got)
	}
	l.says("west", "{}")
	l.pass(120, "north", "west")
	if got := l.Verdict("west").Reason; got == liveness.OtherClusterSet {
		t.Errorf("a member that names no set: %v", got)
	}
}

// TestRedescribed: a member that changes what it says all the time is believed once a minute, and its last word counts.
func TestRedescribed(t *testing.T) {
	l := newLookout(t, nil, "north", "west")
	l.pass(60, "north", "west")
	l.says("west", inRegion("first"))
	l.told = nil
	for i := range 1000 {
		l.says("west", inRegion(fmt.Sprint(i)))
	}
	if got := l.Properties("west")["region"]; got != "0" || len(l.told) != 1 {
		t.Errorf("west is in %q, told %d times", got, len(l.told))
	}
	for minute := range 10 {
		l.pass(60, "north", "west")
		if got := l.Properties("west")["region"]; got != fmt.Sprint(999*(minute+1)) || len(l.told) != minute+2 {
			t.Errorf("in minute %d, west is in %q, told %d times", minute, got, len(l.told))
		}
		for i := range 1000 {
			l.says("west", inRegion(fmt.Sprint(i*(minute+2))))
		}
	}
	// A cluster set that changes all the time quarantines it no more often.
	l = newLookout(t, nil, "north", "west")
	l.pass(60, "north", "west")
	l.SetClusterSet("blue")
	l.says("west", `{"clusterset.k8s.io":"blue"}`)
	l.told = nil
	for i := range 1000 {
		l.says("west", fmt.Sprintf(`{"clusterset.k8s.io":%q}`, []string{"red", "blue"}[i%2]))
	}
	if len(l.told) > 1 || l.Verdict("west").Reason != liveness.OtherClusterSet {
		t.Errorf("west is %v, told %d times", l.Verdict("west"), len(l.told))
	}
}

// TestOtherClusterSet: a member is of another cluster set if both clusters name theirs, and the names differ.
func TestOtherClusterSet(t *testing.T) {
	for _, test := range []struct {
		own, member string
		want        liveness.Reason
	}{
		{"", "", liveness.Heard},
		{"", "blue", liveness.Heard},
		{"blue", "", liveness.Heard},
		{"blue", "blue", liveness.Heard},
		{"blue", "green", liveness.OtherClusterSet},
	} {
		l := newLookout(t, nil, "north", "west")
		l.SetClusterSet(test.own)
		l.says("west", fmt.Sprintf(`{"clusterset.k8s.io":%q}`, test.member))
		l.pass(60, "north", "west")
		if got := l.Verdict("west").Reason; got != test.want {
			t.Errorf("%+v: got %v", test, got)
		}
	}
}
