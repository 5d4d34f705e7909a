// SPDX-License-Identifier: Apache-2.0

package member

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// TestGather: which clusters are members, and what is refused, in any order of the Secrets.
func TestGather(t *testing.T) {
	good := kubeconfig(aToken, aServer)
	for name, test := range map[string]struct {
		static  []Static
		secrets []*corev1.Secret
		// members, with ! where the credential is unusable.
		members []string
		// problems as <source>: <part of the error>.
		problems []string
	}{
		"none": {},
		"two": {
			secrets: []*corev1.Secret{secret("a", "west", 0, good), secret("b", "north.registry", 0, good)},
			members: []string{"north.registry", "west"},
		},
		"no id, a wrong one, our own": {
			secrets: []*corev1.Secret{
				secret("a", "", 0, good), secret("b", "a_b", 0, good),
				secret("c", "east", 0, good),
			},
			problems: []string{"a: use a DNS label", "b: use a DNS label", "c: that of this cluster"},
		},
		"the older of two": {
			secrets:  []*corev1.Secret{secret("a", "west", time.Minute, good), secret("b", "west", time.Hour, good)},
			members:  []string{"west"},
			problems: []string{"a: already that of Secret b"},
		},
		"the first by name of two as old": {
			secrets:  []*corev1.Secret{secret("a", "west", time.Minute, good), secret("b", "west", time.Minute, good)},
			members:  []string{"west"},
			problems: []string{"b: already that of Secret a"},
		},
		"an unusable one is a member still": {
			secrets:  []*corev1.Secret{secret("a", "west", 0, "{"), secret("b", "north", 0, "")},
			members:  []string{"north!", "west!"},
			problems: []string{"a: no kubeconfig", "b: no data"},
		},
		"a flag wins": {
			static: []Static{
				{Cluster: "west", Kubeconfig: "good"},
				{Cluster: "east", Kubeconfig: "good"},
				{Cluster: "north", Kubeconfig: "none"},
			},
			secrets:  []*corev1.Secret{secret("a", "west", 0, good)},
			members:  []string{"north!", "west"},
			problems: []string{"a: named by a flag", "flag: that of this cluster", "flag: none"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			for i := range test.static {
				test.static[i].Kubeconfig = filepath.Join("testdata", test.static[i].Kubeconfig)
			}
			for range 2 {
				slices.Reverse(test.secrets)
				sources, problems := gather(having(test.secrets...).of(Config{Cluster: "east", Static: test.static}), nil, nil, nil)
				members := slices.Sorted(maps.Keys(sources))
				for i, cluster := range members {
					if sources[cluster].err != nil {
						members[i] += "!"
					}
				}
				if !slices.Equal(members, test.members) {
					t.Errorf("members %v, want %v", members, test.members)
				}
				if len(problems) != len(test.problems) {
					t.Errorf("%d problems, want %d: %v", len(problems), len(test.problems), problems)
				}
				for _, want := range test.problems {
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
		})
	}
}

// TestAnnotationsOfAFile: kubeconfig files confine their members as Secrets do. What a member or an inventory wrote, not.
func TestAnnotationsOfAFile(t *testing.T) {
	with := func(extension string) string {
		return strings.Replace(kubeconfig(aToken, aServer), "context: {", "context: {extensions: [{name: "+
			AnnotationsExtension+", extension: "+extension+"}], ", 1)
	}
	confined := with(`{clusterset-dns.github.io/cidrs: 10.3.0.0/16, clusterset-dns.github.io/rank: "5"}`)
	if !strings.Contains(confined, AnnotationsExtension) {
		t.Fatalf("no context in %s", confined)
	}
	file := func(text string) *Candidate {
		path := filepath.Join(t.TempDir(), "kubeconfig")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return &Candidate{Cluster: "west", Kind: kindFlag, File: path}
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
	} {
		s := parse(test.candidate, nil)
		is := s.settings.Load()
		if len(is.cidrs) != test.cidrs || is.rank != test.rank || (s.err == nil) != (test.err == "") ||
			s.err != nil && !strings.Contains(s.err.Error(), test.err) {
			t.Errorf("%s: prefixes %v, rank %d, %v", name, is.cidrs, is.rank, s.err)
		}
	}
	known := &Member{source: parse(file(confined), nil)}
	for _, text := range []string{"", with(`{clusterset-dns.github.io/rank: 5}`)} {
		s := parse(file(text), known)
		if is := s.settings.Load(); !s.unread || len(is.cidrs) != 1 || is.rank != 5 || len(s.candidate.Load().Annotations) != 2 {
			t.Errorf("a file that cannot be read lifts restrictions: prefixes %v, rank %d", is.cidrs, is.rank)
		}
	}
}
