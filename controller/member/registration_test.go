// SPDX-License-Identifier: Apache-2.0

package member

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestGather: the members and the refused candidates, for any order of the candidates. Secrets precede objects of an
// inventory. A member loses its id only to a candidate that is trusted more.
func TestGather(t *testing.T) {
	// Secrets and objects of an inventory as "name=cluster", with "!" if the kubeconfig is invalid. was are the keys of the members west and north. Members with ! if the credential is unusable, and problems as "source: part of
	// the error".
	const inventory = "clusterprofile:fleet"
	for _, test := range []struct{ secrets, objects, was, members, problems string }{
		{},
		{secrets: "a=west b=north.registry", members: "north.registry west"},
		{secrets: "a= b=a_b c=east", problems: "a: use a DNS label; b: use a DNS label; c: that of this cluster"},
		{objects: "a=east b=a_b", problems: "b: use a DNS label"}, // an inventory has the local cluster, too
		{secrets: "a=west b=west", members: "west", problems: "b: already that of Secret a"},
		{secrets: "a=west! b=north!!", members: "north! west!", problems: "a: no kubeconfig; b: no data"},
		{secrets: "b=west", objects: "a=west", was: inventory + " Thing a", members: "west", problems: "a: already that of Secret b"},
		{objects: "a=west b=west", was: inventory + " Thing b", members: "west", problems: "a: already that of Thing b"},
		{secrets: "a=west b=west", was: " Secret b", members: "west", problems: "a: already that of Secret b"},
		{secrets: "a=west b=west", was: " Secret b; Secret a", members: "west", problems: "a: already that of Secret b"}, // a was north
	} {
		have := func(texts string) (secrets []*corev1.Secret) {
			for text := range strings.FieldsSeq(texts) {
				data := []string{kubeconfig(aToken, aServer), "{", ""}[strings.Count(text, "!")]
				name, cluster, _ := strings.Cut(strings.TrimRight(text, "!"), "=")
				secrets = append(secrets, secret(name, cluster, data))
			}
			return secrets
		}
		secrets := have(test.secrets)
		var objects []*Candidate
		for _, each := range have(test.objects) {
			object := ofSecret(each)
			object.Kind, object.Source = "Thing", inventory
			objects = append(objects, object)
		}
		before := map[string]*Candidate{}
		for i, key := range strings.Split(test.was, ";") {
			if parts := strings.Split(key, " "); len(parts) == 3 {
				before[[]string{"west", "north"}[i]] = &Candidate{Source: parts[0], Kind: parts[1], Name: parts[2]}
			}
		}
		for range 2 {
			slices.Reverse(secrets)
			slices.Reverse(objects)
			all := slices.Clone(objects)
			for _, each := range secrets {
				all = append(all, ofSecret(each))
			}
			registered, problems := gather(Config{Cluster: "east"}, all, before, nil)
			members := slices.Sorted(maps.Keys(registered))
			for i, cluster := range members {
				if registered[cluster].unread {
					members[i] += "!"
				}
			}
			if got := strings.Join(members, " "); got != test.members {
				t.Errorf("%+v: members %s", test, got)
			}
			wanted := slices.DeleteFunc(strings.Split(test.problems, "; "), func(text string) bool { return text == "" })
			if len(problems) != len(wanted) {
				t.Errorf("%+v: %d problems: %v", test, len(problems), problems)
			}
			for _, want := range wanted {
				from, part, _ := strings.Cut(want, ": ")
				if !slices.ContainsFunc(problems, func(problem Problem) bool {
					return problem.Candidate.Name == from && problem.Refused && strings.Contains(problem.Err.Error(), part)
				}) {
					t.Errorf("no problem %q in %v", want, problems)
				}
			}
		}
	}
}

// TestSettings: the annotations of a member restrict it, even while one of them is broken. Those in a kubeconfig are ignored.
func TestSettings(t *testing.T) {
	candidate := func(cidrs, rank string) *Candidate {
		return &Candidate{Cluster: "west", Kubeconfig: []byte(kubeconfig(aToken, aServer)), Annotations: map[string]string{
			CIDRsAnnotation: cidrs, RankAnnotation: rank,
		}}
	}
	confined, err := parse("", candidate("10.3.0.0/16", "5"), nil)
	must(t, err)
	known := &Member{}
	known.registration.Store(confined)
	for _, invalid := range []*Candidate{candidate("ten", "5"), candidate("", "5"), candidate("10.4.0.0/16", "V")} {
		is, err := parse("", invalid, known)
		if err == nil || is.unread || !slices.Equal(is.cidrs, confined.cidrs) || is.rank != 5 {
			t.Errorf("%v: %+v, %v", invalid.Annotations, is, err)
		}
		if is, err := parse("", invalid, nil); err == nil || !is.unread {
			t.Errorf("%v of a new member: %+v, %v", invalid.Annotations, is, err)
		}
	}
}

// TestTokenFiles: only a kubeconfig without a credential uses the member's own file, which must exist.
func TestTokenFiles(t *testing.T) {
	tokens := t.TempDir()
	file := filepath.Join(tokens, "west")
	of := func(user, tokens string) (*registration, error) {
		return parse(tokens, &Candidate{Cluster: "west", Kubeconfig: []byte(kubeconfig(user, aServer))}, nil)
	}
	if is, err := of("{}", tokens); err == nil || !is.unread || !strings.Contains(err.Error(), "memberTokens") {
		t.Errorf("without the file: %+v, %v", is, err)
	}
	must(t, os.WriteFile(file, []byte("token"), 0o600))
	for _, test := range []struct{ user, tokens, want string }{
		{"{}", tokens, file}, {"{}", "", ""}, {aToken, tokens, ""}, {"{username: u, password: p}", tokens, ""},
	} {
		is, err := of(test.user, test.tokens)
		if must(t, err); is.credential.Config.BearerTokenFile != test.want {
			t.Errorf("%+v: file %q", test, is.credential.Config.BearerTokenFile)
		}
	}
}
