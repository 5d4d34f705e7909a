// SPDX-License-Identifier: Apache-2.0

package member

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
)

func secret(name, cluster string, age time.Duration, data string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, UID: types.UID(name), Labels: map[string]string{ClusterLabel: cluster},
			CreationTimestamp: metav1.NewTime(time.Unix(1e9, 0).Add(-age)),
		},
		Data: map[string][]byte{KubeconfigKey: []byte(data)},
	}
}

// TestWhatFailsIsTold: why a member cannot be read is told once, and again after it was read.
func TestWhatFailsIsTold(t *testing.T) {
	good, other := kubeconfig(aToken, aServer), kubeconfig(`{token: u}`, aServer)
	healthy := func(m *Member) {
		m.note(watchedSlices, nil)
		m.note(watchedHeartbeat, nil)
	}
	failing := func(m *Member) { m.note(watchedSlices, errors.New("connection refused")) }
	idle := func(*Member) {}
	type step struct {
		kubeconfig string
		cidrs      string
		then       func(*Member)
		want       string
	}
	for name, steps := range map[string][]step{
		"garbage": {
			{"{", "", idle, "refused"}, {"{", "", idle, ""}, {"", "", idle, "refused"}, {good, "", healthy, ""}, {"{", "", idle, "refused"},
		},
		"unreachable": {
			{"{", "", idle, "refused"},
			{good, "", failing, "failed"},
			{good, "", failing, ""},
			{good, "", healthy, ""},
			{good, "", failing, "failed"},
		},
		"wrong annotation": {{good, "no-cidr", idle, "refused"}, {good, "192.0.2.0/24", healthy, ""}},
		"renewed with a wrong annotation": {
			{good, "192.0.2.0/24", healthy, ""},
			{good, "no-cidr", idle, "refused"},
			{other, "no-cidr", inForce(t, other), ""},
			{other, "192.0.2.0/24", healthy, ""},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var told []string
			credential := secret("a", "west", 0, "")
			around := &surroundings{
				secrets: func() []*corev1.Secret { return []*corev1.Secret{credential} },
				reported: func(problem Problem) {
					if problem.Refused {
						told = append(told, "refused")
					} else {
						told = append(told, "failed")
					}
				},
			}
			set := around.members(Config{Cluster: "east", Clock: clocktesting.NewFakeClock(time.Unix(1e9, 0))})
			ctx, cancel := context.WithCancel(t.Context())
			cancel() // nothing is read: the test says how requests went
			var group sync.WaitGroup
			defer group.Wait()
			for i, step := range steps {
				credential = credential.DeepCopy()
				credential.Data[KubeconfigKey] = []byte(step.kubeconfig)
				credential.Annotations = confinedTo(step.cidrs)
				told = nil
				set.refresh(ctx, &group, nil)
				step.then(set.Get("west"))
				if got := strings.Join(told, " "); got != step.want {
					t.Errorf("step %d: told %q, want %q", i, got, step.want)
				}
			}
		})
	}
}

// confinedTo returns the annotations of a member with ranges, without them for none.
func confinedTo(cidrs string) map[string]string {
	if cidrs == "" {
		return map[string]string{}
	}
	return map[string]string{CIDRsAnnotation: cidrs}
}

// TestWhatAMemberSpokeOfIsLookedAtWithoutIt: also where nothing came of it here.
func TestWhatAMemberSpokeOfIsLookedAtWithoutIt(t *testing.T) {
	var set *Members
	var changed []string
	leaving := false
	secrets := []*corev1.Secret{secret("a", "west", 0, kubeconfig(aToken, aServer))}
	around := &surroundings{
		secrets: func() []*corev1.Secret { return secrets },
		serviceChanged: func(service types.NamespacedName) {
			if !leaving {
				return
			}
			spoken := "not spoken of"
			if m := set.Get("west"); m != nil && len(m.Services()) > 0 {
				spoken = "spoken of"
			}
			changed = append(changed, service.Name+" "+spoken)
		},
	}
	set = around.members(Config{Cluster: "east", Clock: clocktesting.NewFakeClock(time.Unix(1e9, 0))})
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // nothing is read
	var group sync.WaitGroup
	defer group.Wait()
	set.refresh(ctx, &group, nil)
	for name, change := range map[string]func(){
		"another credential": func() { secrets[0] = secret("a", "west", 0, kubeconfig(`{token: u}`, aServer)) },
		"none":               func() { secrets = nil },
	} {
		if set.Get("west") == nil {
			secrets = []*corev1.Secret{secret("a", "west", 0, kubeconfig(aToken, aServer))}
			set.refresh(ctx, &group, nil)
		}
		if err := replace(set.Get("west").slices, "1", slice("web-1", "web", "1")); err != nil {
			t.Fatal(err)
		}
		changed = nil
		change()
		leaving = true
		set.refresh(ctx, &group, nil)
		leaving = false
		if !slices.Equal(changed, []string{"web not spoken of"}) {
			t.Errorf("%s: told %q", name, changed)
		}
	}
}

// TestJoiningMembersAreMembers: a handler that is called for one of them finds all of them, so
// that a look at the set forgets none that joined.
func TestJoiningMembersAreMembers(t *testing.T) {
	good := kubeconfig(aToken, aServer)
	var set *Members
	var joined, told []string
	ids := func() string {
		var all []string
		for _, m := range set.List() {
			all = append(all, m.Cluster())
		}
		return strings.Join(all, " ")
	}
	const want = "north south west"
	around := &surroundings{
		secrets: func() []*corev1.Secret {
			return []*corev1.Secret{
				secret("a", "west", 0, good), secret("b", "north", 0, good),
				secret("c", "south", 0, "{"),
			}
		},
		tracked: func(m *Member) {
			joined = append(joined, m.Cluster())
			if got := ids(); got != want {
				t.Errorf("%s joins, and the members are %q", m.Cluster(), got)
			}
		},
		memberChanged: func(cluster string) {
			told = append(told, cluster)
			if len(joined) != 3 {
				t.Errorf("%s changed, and only %v joined", cluster, joined)
			}
		},
	}
	set = around.members(Config{Cluster: "east", Clock: clocktesting.NewFakeClock(time.Unix(1e9, 0))})
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // nothing is read
	var group sync.WaitGroup
	defer group.Wait()
	set.refresh(ctx, &group, nil)
	slices.Sort(joined)
	slices.Sort(told)
	if strings.Join(joined, " ") != want || strings.Join(told, " ") != want {
		t.Errorf("told of %v and %v", joined, told)
	}
}

// TestSecretOfARefusedCredential: annotations of a Secret take effect while its credential is refused, nothing that
// is read is cut off by the refusal, and a member that was refused from the start is read once corrected.
func TestSecretOfARefusedCredential(t *testing.T) {
	good := kubeconfig(aToken, aServer)
	type step struct {
		kubeconfig, cidrs, drain string
		// anew tells that another connection is made, changed that the member is looked at again.
		anew, changed bool
		want          string // the CIDRs
	}
	for name, steps := range map[string][]step{
		"kubeconfig turns bad": {
			{good, "", "", true, true, "[]"},
			{"{", "", "", false, false, "[]"},
			{"{", "", "true", false, true, "[]"},
			{"{", "192.0.2.0/24", "true", false, true, "[192.0.2.0/24]"},
			{good, "192.0.2.0/24", "true", false, false, "[192.0.2.0/24]"},
		},
		"CIDR turns bad": {
			{good, "192.0.2.0/24", "", true, true, "[192.0.2.0/24]"},
			{good, "none", "true", false, true, "[192.0.2.0/24]"},
			{good, "198.51.100.0/24", "true", false, true, "[198.51.100.0/24]"},
		},
		"CIDR turns empty": {
			{good, "192.0.2.0/24", "", true, true, "[192.0.2.0/24]"},
			{good, ", ", "", false, true, "[192.0.2.0/24]"},
		},
		"CIDR bad from the start": {
			{good, "none", "", true, true, "[]"},
			{good, "none", "true", false, true, "[]"},
			{good, "192.0.2.0/24", "true", true, true, "[192.0.2.0/24]"},
		},
		"kubeconfig bad from the start": {
			{"{", "", "", true, true, "[]"},
			{"[", "", "true", false, true, "[]"},
			{good, "", "true", true, true, "[]"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			credential := secret("a", "west", 0, "")
			changed := false
			around := &surroundings{
				secrets:       func() []*corev1.Secret { return []*corev1.Secret{credential} },
				memberChanged: func(string) { changed = true },
			}
			set := around.members(Config{Cluster: "east", Clock: clocktesting.NewFakeClock(time.Unix(1e9, 0))})
			ctx, cancel := context.WithCancel(t.Context())
			cancel() // nothing is read
			var group sync.WaitGroup
			defer group.Wait()
			for i, step := range steps {
				credential = credential.DeepCopy()
				credential.Data[KubeconfigKey] = []byte(step.kubeconfig)
				credential.Annotations = confinedTo(step.cidrs)
				credential.Annotations["drain"] = step.drain
				was := set.Get("west")
				changed = false
				set.refresh(ctx, &group, nil)
				m := set.Get("west")
				if m.Annotations()["drain"] != step.drain || m.Object() != credential {
					t.Errorf("step %d: the member has the Secret with the annotations %v", i, m.Annotations())
				}
				if (m != was) != step.anew || changed != step.changed {
					t.Errorf("step %d: connected anew: %t, looked at again: %t", i, m != was, changed)
				}
				if got := fmt.Sprint(m.CIDRs()); got != step.want {
					t.Errorf("step %d: CIDRs %s, want %s", i, got, step.want)
				}
			}
		})
	}
}

// inForce returns a check that a member is read with a kubeconfig, and that its last valid annotation is in force.
func inForce(t *testing.T, kubeconfig string) func(*Member) {
	return func(m *Member) {
		if is := string(m.source.credential.kubeconfig); m.source.unread || is != kubeconfig || len(m.CIDRs()) != 1 {
			t.Errorf("unread %t, another kubeconfig %t, CIDRs %v", m.source.unread, is != kubeconfig, m.CIDRs())
		}
	}
}
