// SPDX-License-Identifier: Apache-2.0

package member

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/clusterset-dns/clusterset-dns/controller/relay/mailbox"
)

func relaySecret(name, relay string, age time.Duration, data string) *corev1.Secret {
	made := secret(name, "", age, data)
	made.Labels = map[string]string{mailbox.RelayLabel: relay}
	return made
}

func TestGatherRelays(t *testing.T) {
	good := kubeconfig(aToken, aServer)
	one := relaySecret("a", "one", 0, good)
	for name, test := range map[string]struct {
		secrets []*corev1.Secret
		want    string
		problem string
	}{
		"none":             {nil, "", ""},
		"two":              {[]*corev1.Secret{relaySecret("b", "two", 0, good), one}, "one two", ""},
		"an empty name":    {[]*corev1.Secret{relaySecret("a", "", 0, good)}, "", "no DNS label"},
		"direct":           {[]*corev1.Secret{relaySecret("a", "direct", 0, good)}, "", "choose another name"},
		"a dot":            {[]*corev1.Secret{relaySecret("a", "x.y", 0, good)}, "", "no DNS label"},
		"no kubeconfig":    {[]*corev1.Secret{relaySecret("a", "one", 0, "")}, "", `no data under the key "kubeconfig"`},
		"twice":            {[]*corev1.Secret{one, relaySecret("b", "one", time.Hour, good)}, "one", "older Secret b"},
		"first is invalid": {[]*corev1.Secret{one, relaySecret("b", "one", time.Hour, "{")}, "one", "kubeconfig"},
	} {
		t.Run(name, func(t *testing.T) {
			var before relays
			for range 2 {
				valid, all, problems := gatherRelays(test.secrets, before)
				var names []string
				for _, relay := range valid {
					names = append(names, relay.Name)
				}
				if got := strings.Join(names, " "); got != test.want {
					t.Errorf("got %q, want %q", got, test.want)
				}
				if (test.problem != "") != (len(problems) == 1) ||
					len(problems) == 1 && !strings.Contains(problems[0].Err.Error(), test.problem) {
					t.Errorf("problems %v, want %q", problems, test.problem)
				}
				before = all
			}
		})
	}
}

// TestPathsOf: the direct path comes first, relays are for members with keys, and their order differs by member.
func TestPathsOf(t *testing.T) {
	good := kubeconfig(aToken, aServer)
	var usable []Relay
	for _, name := range []string{"one", "two"} {
		relay, err := ParseRelay(relaySecret(name, name, 0, good))
		if err != nil {
			t.Fatal(err)
		}
		usable = append(usable, relay)
	}
	names := func(cluster, data, keys string) string {
		of := secret("a", cluster, 0, data)
		of.Data[mailbox.PublicKeysKey] = []byte(keys)
		source := parse(ofSecret(of), nil)
		if source.err != nil {
			t.Fatal(source.err)
		}
		var names []string
		for _, p := range pathsOf(source, usable) {
			names = append(names, p.name())
		}
		return strings.Join(names, " ")
	}
	keys := publicKeys(t, keyOf(1))
	if got := names("west", good, ""); got != "direct" {
		t.Errorf("without keys: %s", got)
	}
	orders := map[string]int{}
	for _, cluster := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		orders[names(cluster, "", keys)]++
		if got := names(cluster, good, keys); !strings.HasPrefix(got, "direct ") {
			t.Errorf("%s: %s", cluster, got)
		}
	}
	if orders["one two"] == 0 || orders["two one"] == 0 || len(orders) != 2 {
		t.Errorf("orders %v", orders)
	}
}

// TestMembersOfRelays: a member needs a kubeconfig or keys, and relays and keys change without a new connection.
func TestMembersOfRelays(t *testing.T) {
	good, keys := kubeconfig(aToken, aServer), publicKeys(t, keyOf(1))
	credential := secret("a", "west", 0, "")
	var told []string
	var hubs []*corev1.Secret
	around := &surroundings{
		secrets: func() []*corev1.Secret { return []*corev1.Secret{credential} },
		reported: func(problem Problem) {
			if problem.Err != nil {
				told = append(told, problem.Err.Error())
			}
		},
	}
	set := around.members(Config{
		Cluster: "east", Clock: clocktesting.NewFakeClock(time.Unix(1e9, 0)),
		Relays: func() []*corev1.Secret { return hubs },
	})
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // nothing is read
	var group sync.WaitGroup
	defer group.Wait()
	before := set.refresh(ctx, &group, nil)
	if len(told) != 1 || !strings.Contains(told[0], `"kubeconfig", nor under "public-keys"`) {
		t.Fatalf("told %q", told)
	}
	credential = credential.DeepCopy()
	credential.Data[mailbox.PublicKeysKey] = []byte("x")
	before = set.refresh(ctx, &group, before)
	if len(told) != 2 || !strings.Contains(told[1], "public-keys: public key 1 is no PEM") {
		t.Fatalf("told %q", told)
	}
	credential = credential.DeepCopy()
	credential.Data[mailbox.PublicKeysKey] = []byte(keys)
	before = set.refresh(ctx, &group, before)
	m := set.Get("west")
	current := func() []string {
		all, _ := set.connections["west"].paths.get()
		var names []string
		for _, p := range all {
			names = append(names, p.name())
		}
		return names
	}
	if len(told) != 2 || len(current()) != 0 || !m.Relayed() {
		t.Fatalf("told %q, paths %v", told, current())
	}
	hubs = []*corev1.Secret{relaySecret("h", "hub", 0, good)}
	before = set.refresh(ctx, &group, before)
	if got := current(); !slices.Equal(got, []string{"hub"}) || set.Get("west") != m {
		t.Errorf("paths %v", got)
	}
	credential = credential.DeepCopy()
	credential.Data[mailbox.PublicKeysKey] = []byte(publicKeys(t, keyOf(2)))
	was, changed := set.connections["west"].paths.get()
	before = set.refresh(ctx, &group, before)
	select {
	case <-changed:
	default:
		t.Errorf("another key does not take effect: %v", was)
	}
	kept := credential
	credential = credential.DeepCopy()
	delete(credential.Data, mailbox.PublicKeysKey)
	before = set.refresh(ctx, &group, before)
	if got := current(); len(got) != 0 || set.Get("west") != m || m.Relayed() {
		t.Errorf("paths without the last key: %v", got)
	}
	credential = kept.DeepCopy()
	before = set.refresh(ctx, &group, before)
	if got := current(); !slices.Equal(got, []string{"hub"}) || set.Get("west") != m {
		t.Errorf("paths with the key again: %v", got)
	}
	hubs = nil
	before = set.refresh(ctx, &group, before)
	if got := current(); len(got) != 0 || set.Get("west") != m {
		t.Errorf("paths %v", got)
	}
	if err := m.RestoreHeard("k:5"); err != nil {
		t.Fatal(err)
	}
	credential = credential.DeepCopy()
	credential.Data[KubeconfigKey] = []byte(good)
	set.refresh(ctx, &group, before)
	if next := set.Get("west"); next == m || next.Heard() != "k:5" {
		t.Errorf("the member with another credential heard %q", next.Heard())
	}
}
