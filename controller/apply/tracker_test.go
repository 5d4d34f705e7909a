// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TestTracker plays sequences of passes, writes and events.
func TestTracker(t *testing.T) {
	web := types.NamespacedName{Namespace: "demo", Name: "web"}
	object := func(uid, version string) metav1.Object {
		return &metav1.ObjectMeta{UID: types.UID(uid), ResourceVersion: version}
	}
	going := &metav1.ObjectMeta{UID: "a", ResourceVersion: "6", DeletionTimestamp: &metav1.Time{}}
	start := time.Unix(1000, 0)
	type step struct {
		do     string // begins, wrote (a whole pass if none began), ends, shows, gone, behind, waits, or expired
		object metav1.Object
		after  time.Duration
		want   bool
	}
	for name, steps := range map[string][]step{
		"what others write is due":         {{"shows", object("a", "5"), 0, true}},
		"what was written is not":          {{"wrote", object("a", "5"), 0, false}, {"shows", object("a", "5"), 0, false}, {"shows", object("a", "6"), 0, true}},
		"others overtook it":               {{"wrote", object("a", "5"), 0, false}, {"shows", object("a", "7"), 0, true}},
		"what it replaced is not":          {{"wrote", object("a", "5"), 0, false}, {"shows", object("a", "4"), 0, false}, {"behind", nil, 0, true}},
		"another object is":                {{"wrote", object("a", "5"), 0, false}, {"shows", object("b", "6"), 0, true}},
		"it is deleted":                    {{"wrote", object("a", "5"), 0, false}, {"gone", object("a", "5"), 0, true}, {"behind", nil, 0, false}},
		"what was deleted is not":          {{"wrote", object("a", ""), 0, false}, {"shows", object("a", "5"), 0, false}, {"behind", nil, 0, true}, {"gone", object("a", "5"), 0, true}, {"behind", nil, 0, false}},
		"a finalizer holds it":             {{"wrote", object("a", ""), 0, false}, {"shows", going, 0, true}, {"behind", nil, 0, false}},
		"a pass waits":                     {{"wrote", object("a", "5"), 0, false}, {"behind", nil, 0, true}, {"shows", object("a", "5"), 0, false}, {"behind", nil, 0, false}},
		"a pass is due then":               {{"wrote", object("a", "5"), 0, false}, {"waits", nil, 0, true}, {"shows", object("a", "5"), 0, true}, {"waits", nil, 0, false}},
		"a pass is due after all":          {{"begins", nil, 0, false}, {"wrote", object("a", "5"), 0, false}, {"wrote", object("b", "6"), 0, false}, {"ends", nil, 0, false}, {"waits", nil, 0, true}, {"shows", object("a", "5"), 0, false}, {"shows", object("b", "6"), 0, true}},
		"a pass waits for all":             {{"begins", nil, 0, false}, {"wrote", object("a", "5"), 0, false}, {"wrote", object("b", "6"), 0, false}, {"ends", nil, 0, false}, {"behind", nil, 0, true}, {"shows", object("a", "5"), 0, false}, {"shows", object("b", "6"), 0, false}, {"behind", nil, 0, false}},
		"the answer comes after the event": {{"begins", nil, 0, false}, {"shows", object("a", "5"), 0, false}, {"wrote", object("a", "5"), 0, false}, {"ends", nil, 0, false}, {"behind", nil, 0, false}, {"shows", object("a", "6"), 0, true}},
		"others overtake the answer":       {{"begins", nil, 0, false}, {"shows", object("a", "5"), 0, false}, {"shows", object("a", "6"), 0, false}, {"wrote", object("a", "5"), 0, false}, {"ends", nil, 0, true}, {"behind", nil, 0, false}},
		"it is gone before the answer":     {{"begins", nil, 0, false}, {"gone", object("a", "5"), 0, false}, {"wrote", object("a", "5"), 0, false}, {"ends", nil, 0, true}, {"behind", nil, 0, false}},
		"an older event before the answer": {{"begins", nil, 0, false}, {"shows", object("a", "4"), 0, false}, {"wrote", object("a", "5"), 0, false}, {"ends", nil, 0, false}, {"behind", nil, 0, true}},
		"another object before the answer": {{"begins", nil, 0, false}, {"shows", object("b", "4"), 0, false}, {"wrote", object("a", "5"), 0, false}, {"ends", nil, 0, true}},
		"a request fails":                  {{"begins", nil, 0, false}, {"ends", nil, 0, false}, {"shows", object("a", "5"), 0, true}},
		"a request fails after an event":   {{"begins", nil, 0, false}, {"shows", object("a", "5"), 0, false}, {"ends", nil, 0, true}},
		"two writes at a time":             {{"begins", nil, 0, false}, {"wrote", object("a", "5"), 0, false}, {"shows", object("a", "5"), 0, false}, {"shows", object("a", "6"), 0, false}, {"wrote", object("a", "6"), 0, false}, {"ends", nil, 0, false}, {"behind", nil, 0, false}},
		"an earlier write is overtaken":    {{"begins", nil, 0, false}, {"wrote", object("b", "5"), 0, false}, {"shows", object("b", "6"), 0, false}, {"wrote", object("a", "7"), 0, false}, {"ends", nil, 0, true}},
		"resourceVersions go back":         {{"wrote", object("a", "500"), 0, false}, {"shows", object("a", "4"), 0, false}, {"expired", nil, UnseenFor, true}, {"behind", nil, 0, false}},
		"no cache shows it":                {{"wrote", object("a", "5"), 0, false}, {"expired", nil, UnseenFor - 1, false}, {"behind", nil, 0, true}, {"expired", nil, UnseenFor, true}, {"behind", nil, 0, false}},
	} {
		var all tracker
		for i, s := range steps {
			now, got := start.Add(s.after), false
			switch s.do {
			case "begins":
				all.begins(web)
			case "wrote":
				alone := all.services[web] == nil
				if alone {
					all.begins(web)
				}
				all.wrote(web, s.object.GetUID(), s.object.GetResourceVersion(), now)
				got = alone && all.ends(web)
			case "ends":
				got = all.ends(web)
			case "behind":
				got = all.Behind(web)
			case "waits":
				got = all.Wait(web)
			case "expired":
				got = all.Expired(web, now)
			default:
				due, waited := all.Sees(web, Change{s.object, s.do == "gone"})
				got = due || waited
			}
			if got != s.want {
				t.Errorf("%s: step %d, %s: %t", name, i, s.do, got)
			}
		}
		if all.Expired(web, start.Add(3*UnseenFor)); len(all.services) > 0 {
			t.Errorf("%s: left are %v", name, all.services)
		}
	}
}
