// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TestTracker plays writes, what caches show, and passes.
func TestTracker(t *testing.T) {
	web := types.NamespacedName{Namespace: "demo", Name: "web"}
	object := func(uid, version string) metav1.Object {
		return &metav1.ObjectMeta{UID: types.UID(uid), ResourceVersion: version}
	}
	going := &metav1.ObjectMeta{UID: "a", ResourceVersion: "6", DeletionTimestamp: &metav1.Time{}}
	start := time.Unix(1000, 0)
	type step struct {
		do     string // sends, wrote, fails, shows, gone, forget, pass, or expired
		object metav1.Object
		after  time.Duration
		want   bool
	}
	for name, steps := range map[string][]step{
		"what others write is due":         {{"shows", object("a", "5"), 0, true}},
		"what was written is not":          {{"wrote", object("a", "5"), 0, false}, {"shows", object("a", "5"), 0, false}, {"shows", object("a", "6"), 0, true}},
		"others overtook it":               {{"wrote", object("a", "5"), 0, false}, {"shows", object("a", "7"), 0, true}},
		"what it replaced is not":          {{"wrote", object("a", "5"), 0, false}, {"shows", object("a", "4"), 0, false}, {"pass", nil, 0, true}},
		"another object is":                {{"wrote", object("a", "5"), 0, false}, {"shows", object("b", "6"), 0, true}},
		"it is deleted":                    {{"wrote", object("a", "5"), 0, false}, {"gone", object("a", "5"), 0, true}, {"pass", nil, 0, false}},
		"what was deleted is not":          {{"wrote", object("a", ""), 0, false}, {"shows", object("a", "5"), 0, false}, {"pass", nil, 0, true}, {"gone", object("a", "5"), 0, true}, {"pass", nil, 0, false}},
		"a finalizer holds it":             {{"wrote", object("a", ""), 0, false}, {"shows", going, 0, true}, {"pass", nil, 0, false}},
		"a pass waits":                     {{"wrote", object("a", "5"), 0, false}, {"pass", nil, 0, true}, {"shows", object("a", "5"), 0, false}, {"pass", nil, 0, false}},
		"a pass waits for all":             {{"wrote", object("a", "5"), 0, false}, {"wrote", object("b", "6"), 0, false}, {"pass", nil, 0, true}, {"shows", object("a", "5"), 0, false}, {"shows", object("b", "6"), 0, false}, {"pass", nil, 0, false}},
		"the answer comes after the event": {{"sends", nil, 0, false}, {"shows", object("a", "5"), 0, false}, {"wrote", object("a", "5"), 0, false}, {"pass", nil, 0, false}, {"shows", object("a", "6"), 0, true}},
		"others overtake the answer":       {{"sends", nil, 0, false}, {"shows", object("a", "5"), 0, false}, {"shows", object("a", "6"), 0, false}, {"wrote", object("a", "5"), 0, true}, {"pass", nil, 0, false}},
		"it is gone before the answer":     {{"sends", nil, 0, false}, {"gone", object("a", "5"), 0, false}, {"wrote", object("a", "5"), 0, true}, {"pass", nil, 0, false}},
		"an older event before the answer": {{"sends", nil, 0, false}, {"shows", object("a", "4"), 0, false}, {"wrote", object("a", "5"), 0, false}, {"pass", nil, 0, true}},
		"another object before the answer": {{"sends", nil, 0, false}, {"shows", object("b", "4"), 0, false}, {"wrote", object("a", "5"), 0, true}},
		"a request fails":                  {{"sends", nil, 0, false}, {"fails", nil, 0, false}, {"shows", object("a", "5"), 0, true}},
		"a request fails after an event":   {{"sends", nil, 0, false}, {"shows", object("a", "5"), 0, false}, {"fails", nil, 0, true}},
		"two writes at a time":             {{"wrote", object("a", "5"), 0, false}, {"sends", nil, 0, false}, {"shows", object("a", "5"), 0, false}, {"shows", object("a", "6"), 0, false}, {"wrote", object("a", "6"), 0, false}, {"pass", nil, 0, false}},
		"an earlier write is overtaken":    {{"wrote", object("b", "5"), 0, false}, {"sends", nil, 0, false}, {"shows", object("b", "6"), 0, false}, {"wrote", object("a", "7"), 0, true}},
		"resourceVersions go back":         {{"wrote", object("a", "500"), 0, false}, {"shows", object("a", "4"), 0, false}, {"expired", nil, unseenFor, true}, {"pass", nil, 0, false}},
		"its namespace is deleted":         {{"wrote", object("a", "5"), 0, false}, {"forget", nil, 0, false}, {"pass", nil, 0, false}},
		"no cache shows it":                {{"wrote", object("a", "5"), 0, false}, {"expired", nil, unseenFor - 1, false}, {"pass", nil, 0, true}, {"expired", nil, unseenFor, true}, {"pass", nil, 0, false}},
	} {
		var all tracker
		for i, s := range steps {
			now, got := start.Add(s.after), false
			switch s.do {
			case "sends":
				all.sends(web)
			case "wrote":
				if all.early[web] == nil {
					all.sends(web)
				}
				got = all.answered(web, s.object, now)
			case "fails":
				got = all.answered(web, nil, now)
			case "pass":
				got = all.Behind(web)
			case "forget":
				all.Forget(web)
			case "expired":
				got = len(all.Expired(now)) > 0
			default:
				got = all.Sees(web, Change{s.object, s.do == "gone"})
			}
			if got != s.want {
				t.Errorf("%s: step %d, %s: %t", name, i, s.do, got)
			}
		}
		if all.Expired(start.Add(3 * unseenFor)); len(all.services)+len(all.early) > 0 {
			t.Errorf("%s: left are %v and %v", name, all.services, all.early)
		}
	}
}
