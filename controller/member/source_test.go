// SPDX-License-Identifier: Apache-2.0

package member

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestGather: the members and the refused candidates, for any order of the candidates. Flags precede Secrets, and Secrets
// precede objects of an inventory. A member loses its id only to a candidate that is trusted more.
func TestGather(t *testing.T) {
	// Secrets and objects of an inventory as "name=cluster", with "!" if the kubeconfig is invalid. Flags as "cluster=file". was
	// are the keys of the members west and north. Members with ! if the credential is unusable, and problems as "source: part of
	// the error".
	const inventory = "clusterprofile:fleet"
	for _, test := range []struct{ flags, secrets, objects, was, members, problems string }{
		{},
		{secrets: "a=west b=north.registry", members: "north.registry west"},
		{secrets: "a= b=a_b c=east", problems: "a: use a DNS label; b: use a DNS label; c: that of this cluster"},
		{objects: "a=east b=a_b", problems: "b: use a DNS label"}, // an inventory has the local cluster, too
		{secrets: "a=west b=west", members: "west", problems: "b: already that of Secret a"},
		{secrets: "a=west! b=north!!", members: "north! west!", problems: "a: no kubeconfig; b: no data"},
		{
			flags: "west=good east=good north=none", secrets: "a=west", objects: "b=west", members: "north! west",
			problems: "a: already that of file; b: already that of file; flag: that of this cluster; flag: none",
		},
		{secrets: "b=west", objects: "a=west", was: inventory + " Thing a", members: "west", problems: "a: already that of Secret b"},
		{objects: "a=west b=west", was: inventory + " Thing b", members: "west", problems: "a: already that of Thing b"},
		{secrets: "a=west b=west", was: " Secret b", members: "west", problems: "a: already that of Secret b"},
		{secrets: "a=west b=west", was: " Secret b; Secret a", members: "west", problems: "a: already that of Secret b"}, // a was north
	} {
		var static []Static
		for flag := range strings.FieldsSeq(test.flags) {
			cluster, file, _ := strings.Cut(flag, "=")
			static = append(static, Static{Cluster: cluster, Kubeconfig: filepath.Join("testdata", file)})
		}
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
			sources, problems := gather(having(secrets...).of(Config{Cluster: "east", Static: static}), objects,
				before, nil)
			members := slices.Sorted(maps.Keys(sources))
			for i, cluster := range members {
				if sources[cluster].unread {
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
					source := "flag"
					if problem.Candidate.Object != nil {
						source = problem.Candidate.Name
					}
					return source == from && problem.Refused && strings.Contains(problem.Err.Error(), part)
				}) {
					t.Errorf("no problem %q in %v", want, problems)
				}
			}
		}
	}
}

// annotated is the kubeconfig of a file with annotations.
func annotated(kubeconfig, annotations string) string {
	return strings.Replace(kubeconfig, "context: {", "context: {extensions: [{name: "+AnnotationsExtension+", extension: "+annotations+
		"}], ", 1)
}

// TestAnnotationsOfAFile: annotations in a flag's file restrict the member as on a Secret, even while the file is broken, and after a
// restart. Those of other kubeconfigs are ignored.
func TestAnnotationsOfAFile(t *testing.T) {
	with := func(annotations string) string { return annotated(kubeconfig(aToken, aServer), annotations) }
	confined := with(`{clusterset-dns.github.io/cidrs: 10.3.0.0/16, clusterset-dns.github.io/rank: "5"}`)
	if !strings.Contains(confined, AnnotationsExtension) {
		t.Fatalf("no context in %s", confined)
	}
	file := func(text string) *Candidate {
		return &Candidate{Cluster: "west", Kind: kindFlag, Name: write(t, filepath.Join(t.TempDir(), "kubeconfig"), []byte(text))}
	}
	for name, test := range map[string]struct {
		candidate *Candidate
		cidrs     int
		rank      int
		err       string
	}{
		"flag":      {file(confined), 1, 5, ""},
		"inventory": {&Candidate{Cluster: "west", Kind: "ClusterProfile", Kubeconfig: []byte(confined)}, 0, 0, ""},
		"none":      {file(kubeconfig(aToken, aServer)), 0, 0, ""},
		"no texts":  {file(with(`{clusterset-dns.github.io/rank: 5}`)), 0, 0, "use texts as values"},
		"wrong":     {file(with(`{clusterset-dns.github.io/cidrs: ten}`)), 0, 0, "annotation clusterset-dns.github.io/cidrs"},
		"no token": {
			file(annotated(kubeconfig(`{tokenFile: missing}`, aServer), `{clusterset-dns.github.io/cidrs: 10.3.0.0/16, clusterset-dns.github.io/rank: "5"}`)),
			1, 5, "missing",
		},
		"no file": {&Candidate{Cluster: "west", Kind: kindFlag, Name: "missing"}, 0, 0, "no such file"},
	} {
		is, err := parse(test.candidate, nil, nil)
		if len(is.cidrs) != test.cidrs || is.rank != test.rank || (err == nil) != (test.err == "") ||
			err != nil && !strings.Contains(err.Error(), test.err) {
			t.Errorf("%s: prefixes %v, rank %d, %v", name, is.cidrs, is.rank, err)
		}
	}
	is, _ := parse(file(confined), nil, nil)
	known := &Member{}
	known.source.Store(is)
	for _, text := range []string{"{", with("{clusterset-dns.github.io/rank: 5}")} { // the member keeps its restrictions
		for when, known := range map[string]*Member{"in time": known, "after a restart": nil} {
			is, err := parse(file(text), is.candidate, known)
			if err == nil || !is.unread || len(is.cidrs) != 1 || is.rank != 5 || len(is.candidate.Annotations) != 2 {
				t.Errorf("%s after annotations, %s: %+v, %v", text, when, is, err)
			}
		}
	}
}
