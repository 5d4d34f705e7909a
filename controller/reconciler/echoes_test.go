// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"strings"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/clusterset-dns/clusterset-dns/controller/apply"
	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

// TestEchoes plays passes and events of one service: only an event that shows exactly what the last pass wrote is no reason for
// another pass.
func TestEchoes(t *testing.T) {
	r, web := withAPI(t), types.NamespacedName{Namespace: "demo", Name: "web"}
	for name, steps := range map[string]string{
		"what others write is due":         "shows:a5!",
		"what was written is not":          "begins ends:a5 shows:a5 shows:a6!",
		"two writes of an object":          "begins ends:a5,a6 shows:a5 shows:a6 shows:a6!",
		"others overtake it":               "begins ends:a5 shows:a7!",
		"another object is due":            "begins ends:a5 shows:b5!",
		"it is deleted":                    "begins ends:a5 shows:a5 gone:a5! gone:a5!",
		"it is gone before it is shown":    "begins ends:a5 gone:a5!",
		"it is replaced":                   "begins ends:a5 shows:c6!",
		"the answer comes after the event": "begins shows:a5 ends:a5 shows:a6!",
		"others overtake the answer":       "begins shows:a5 shows:a6 ends:a5!",
		"it is gone before the answer":     "begins shows:a5 gone:a5 ends:a5!",
		"another object before the answer": "begins shows:b4 ends:a5! shows:a5",
		"a pass writes nothing":            "begins ends: shows:a5!",
		"a request fails after an event":   "begins shows:a5 ends:!",
		// The second pass may have read the caches before the event.
		"a pass begins before the event": "begins ends:a5 begins ends: shows:a5!",
		"the event comes while it runs":  "begins ends:a5 begins shows:a5 ends:!",
		"resourceVersions go back":       "begins ends:a500 shows:a4! begins ends:a5 shows:a5",
	} {
		r.echoes = newEchoes()
		versions := func(text string) sets.Set[apply.Version] {
			all := sets.Set[apply.Version]{}
			for _, each := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' }) {
				all.Insert(apply.Version{UID: types.UID(each[:1]), ResourceVersion: each[1:]})
			}
			return all
		}
		for i, step := range strings.Fields(steps) {
			step, want := strings.CutSuffix(step, "!")
			do, what, _ := strings.Cut(step, ":")
			due := false
			switch do {
			case "begins":
				r.echoes.begins(web)
			case "ends":
				due = r.echoes.ends(web, versions(what))
			default:
				object := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{
					Namespace: "demo", UID: types.UID(what[:1]), ResourceVersion: what[1:], Labels: map[string]string{export.LabelService: "web"},
				}}
				if do == "gone" {
					onChange(r.onSlice)(object, nil)
				} else {
					onChange(r.onSlice)(nil, object)
				}
				due = queued(r) != ""
			}
			if due != want {
				t.Errorf("%s: step %d, %s: due %t", name, i, step, due)
			}
		}
		if len(r.echoes.seen) > 0 {
			t.Errorf("%s: left are %v", name, r.echoes.seen)
		}
	}
}
