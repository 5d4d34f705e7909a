// SPDX-License-Identifier: Apache-2.0

package memberstate

import (
	"fmt"
	"testing"

	"k8s.io/client-go/kubernetes/fake"

	"github.com/clusterset-dns/clusterset-dns/controller/liveness"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
)

func inRegion(name string) member.Description {
	return member.Description{Properties: fmt.Sprintf("{%q:%q}", "region", name)}
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
	if l.AnyPolicy() {
		t.Error("a member refuses something")
	}
	l.Described("west", member.Description{})
	region("", "[]")
	l.Described("west", inRegion("eu"))
	region("eu", "[west]")
	l.pass(60, "north", "west")
	region("eu", "[]")
	l.Described("west", member.Description{Properties: "{", Accepts: `{"*":"shop"}`}) // a part is invalid
	region("eu", "[west]")
	if policy := l.Policy("west"); policy.Others.String() != "shop" || !l.Policy("nobody").Others.All() {
		t.Errorf("west accepts %v", policy)
	}
	l.Described("west", member.Description{Properties: `{"region":"eu"}`, Accepts: "{"})
	region("eu", "[]")
	if policy := l.Policy("west"); policy.Others.String() != "shop" {
		t.Errorf("west accepts %v", policy)
	}
	l.Described("west", inRegion("eu"))
	region("eu", "[west]")
	l.Described("west", member.Description{Properties: `{"region":"eu"}`, Accepts: `{"*":""}`})
	region("eu", "[west]")
	l.Described("nobody", inRegion("eu"))
	if got := l.Properties("nobody"); got != nil {
		t.Errorf("got %v of a cluster that is no member", got)
	}

	// Another cluster in its place is not believed.
	l.LeaseRead("west", "another", l.now.Now(), true, false)
	l.told = nil
	l.Described("west", inRegion("us"))
	region("eu", "[]")
	l.LeaseRead("west", "uid-of-west", l.now.Now(), true, true)
	l.told = nil
	l.Described("west", inRegion("asia"))
	region("eu", "[]")

	client := fake.NewClientset()
	leases := &Leases{client: client, namespace: "system", tracker: l.Tracker}
	if _, err := leases.load(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := leases.write(t.Context()); err != nil {
		t.Fatal(err)
	}
	left, err := leases.load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	again := newLookout(t, left, "north", "west")
	if again.pass(600, "north"); !again.AnyPolicy() {
		t.Error("after a restart, no member refuses anything")
	}
	if got := again.Properties("west")["region"]; got != "eu" || again.Verdict("west").State != liveness.Stale {
		t.Errorf("after a restart, west is %v in %q", again.Verdict("west").State, got)
	}
	if policy := again.Policy("west"); policy.Others.All() {
		t.Errorf("after a restart, west accepts %v", policy)
	}
	again.pass(300, "north", "west")
	again.told = nil
	again.Described("west", member.Description{}) // its controller is of a version before
	if got := again.Properties("west"); len(got) > 0 || fmt.Sprint(again.told) != "[west]" {
		t.Errorf("got %v, told of %v", got, again.told)
	}
	if lease := again.lease("west"); lease.Annotations["clusterset-dns.github.io/properties"] != "" {
		t.Errorf("the Lease has %v", lease.Annotations)
	}
}
