// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"slices"
	"strings"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// copiesOf makes copies of slices, each "name" or "name@uid".
func copiesOf(text string) []*discoveryv1.EndpointSlice {
	var copies []*discoveryv1.EndpointSlice
	for _, word := range strings.Fields(text) {
		name, uid, _ := strings.Cut(word, "@")
		copies = append(copies, &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(uid)}})
	}
	return copies
}

func textOf(copies []*discoveryv1.EndpointSlice) string {
	var words []string
	for _, slice := range copies {
		word := slice.Name
		if slice.UID != "" {
			word += "@" + string(slice.UID)
		}
		words = append(words, word)
	}
	slices.Sort(words)
	return strings.Join(words, " ")
}

// TestRemembered plays what is seen of one service, and tells after each step
// which copies count.
func TestRemembered(t *testing.T) {
	web, db := types.NamespacedName{Namespace: "demo", Name: "web"}, types.NamespacedName{Namespace: "demo", Name: "db"}
	all := func(string) bool { return true }
	r := &remembered{}
	look := func(existing, want string) {
		t.Helper()
		if got := textOf(r.of(web, "west", copiesOf(existing), all)); got != want {
			t.Errorf("of %q: got %q, want %q", existing, got, want)
		}
	}
	look("", "")
	look("a b", "a b")
	look("b", "a b")         // a was collected
	look("", "a b")          // and b
	look("a@2 c", "a@2 b c") // a is back, and is what is there
	if got := textOf(r.of(web, "north", nil, all)) + textOf(r.of(db, "west", nil, all)); got != "" {
		t.Errorf("others have %q", got)
	}
	if got := r.services("west"); !slices.Equal(got, []types.NamespacedName{web}) {
		t.Errorf("west has %v", got)
	}
	// Some no longer count, and do not come back.
	if got := textOf(r.of(web, "west", nil, func(name string) bool { return name == "c" })); got != "c" {
		t.Errorf("got %q, want c", got)
	}
	look("", "c")
	r.forget(web, "west")
	look("", "")

	// A copy that was deleted on purpose is still in the caches.
	r.removing(web, "1")
	look("a@1 b@2", "b@2")
	r.retain(web, []string{"west"}, copiesOf("a@1 b@2"))
	look("a@1", "b@2")
	r.retain(web, []string{"west"}, copiesOf(""))
	look("", "b@2")
	if len(r.removed) > 0 {
		t.Errorf("%v is still waited for", r.removed)
	}
	// The deletion failed, and the copy is wanted again.
	r.removing(web, "3")
	r.keeping(web, "3")
	look("d@3", "b@2 d@3")
	// The cluster left.
	r.retain(web, []string{"north"}, nil)
	look("", "")
	if len(r.copies) > 0 {
		t.Errorf("%v is left", r.copies)
	}
}
