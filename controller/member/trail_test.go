// SPDX-License-Identifier: Apache-2.0

package member

import (
	"fmt"
	"io"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestTrail(t *testing.T) {
	history := History(nil).Begin("a")
	// begin is a list at 10 and the slices a at 12, b at 14, and a at 16.
	begin := func() *trail {
		trail := newTrail("10")
		trail.deliver("a", "12")
		trail.deliver("b", "14")
		trail.deliver("a", "16")
		return trail
	}
	for _, test := range []struct {
		name     string
		anchor   uint64
		anchored bool
		from     uint64
		replay   string
	}{
		{"a heartbeat before the list", 9, false, 0, ""},
		{"that of the list", 10, true, 10, "map[a:16 b:14]"},
		{"one between two slices", 13, true, 13, "map[a:16 b:14]"},
		{"one before the last slice", 15, true, 15, "map[a:16]"},
		{"one after the last slice", 18, true, 16, "map[]"},
	} {
		trail := begin()
		trail.setAnchor(renewal{version: test.anchor, history: history})
		if trail.anchored() != test.anchored {
			t.Errorf("%s: anchored %t", test.name, trail.anchored())
		}
		if !test.anchored {
			continue
		}
		if from := trail.resume(); from != test.from || fmt.Sprint(trail.replay) != test.replay {
			t.Errorf("%s: from %d, again %v; want %d, %s", test.name, from, trail.replay, test.from, test.replay)
		}
	}

	trail := begin()
	trail.setAnchor(renewal{version: 13, history: history})
	trail.resume()
	if trail.deliver("a", "15") || !trail.deliver("b", "14") || trail.proven() || trail.passed() {
		t.Error("an older state of a is delivered, or b is not, or a is not waited for")
	}
	trail.setAnchor(renewal{version: 20, history: history})
	if trail.anchor.version != 13 {
		t.Error("an anchor is taken before everything was delivered again")
	}
	if trail.bookmark("20"); !trail.passed() {
		t.Error("a was lost, and is waited for")
	}

	trail = begin()
	trail.setAnchor(renewal{version: 13})
	if trail.anchored() {
		t.Error("a heartbeat without a history is an anchor")
	}
	trail.setAnchor(renewal{version: 13, history: history})
	for i := range maxRecent + 1 {
		trail.deliver(fmt.Sprint(i), "30")
	}
	if trail.anchored() || len(trail.recent) > maxRecent {
		t.Error("more slices are remembered than may be")
	}
	if trail.setAnchor(renewal{version: 31, history: history}); !trail.anchored() {
		t.Error("a heartbeat after all slices is no anchor")
	}

	for _, version := range []string{"", "x"} {
		trail := newTrail(version)
		if trail.setAnchor(renewal{version: 31, history: history}); trail.anchored() {
			t.Errorf("resumes from resourceVersion %q", version)
		}
	}
}

// TestAnchorIsARenewal: a Lease that changed without a renewal is not evidence of what etcd has.
func TestAnchorIsARenewal(t *testing.T) {
	history := History(nil).Begin("a").Next()
	trail := newTrail("10")
	trail.setAnchor(renewal{20, history})
	trail.setAnchor(renewal{30, history})
	if trail.anchor.version != 20 {
		t.Errorf("the anchor is at %d", trail.anchor.version)
	}
	trail.setAnchor(renewal{40, history.Next()})
	if trail.anchor.version != 40 {
		t.Errorf("the anchor is at %d", trail.anchor.version)
	}
}

// TestRefused: what the API server would refuse again is not tried again.
func TestRefused(t *testing.T) {
	resource := schema.GroupResource{Resource: "endpointslices"}
	for err, want := range map[error]bool{
		apierrors.NewForbidden(resource, "", nil):          true,
		apierrors.NewUnauthorized("who"):                   true,
		apierrors.NewNotFound(resource, "x"):               true,
		apierrors.NewBadRequest("what"):                    true,
		apierrors.NewMethodNotSupported(resource, "watch"): true,
		apierrors.NewTooManyRequests("later", 1):           false,
		apierrors.NewInternalError(io.EOF):                 false,
		io.EOF:                                             false,
	} {
		if refused(err) != want {
			t.Errorf("%v: refused: %t", err, !want)
		}
	}
}
