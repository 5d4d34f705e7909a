// SPDX-License-Identifier: Apache-2.0

package member

import (
	"strings"
	"testing"
)

func TestParseRank(t *testing.T) {
	for text, want := range map[string]int{
		"0": 0, "-0": 0, "7": 7, "+7": 7, "-1": -1, "1000": 1000, "-1000": -1000,
		"": LastRank, "1001": LastRank, "-1001": LastRank, "first": LastRank, "1.5": LastRank,
		" 1":                    LastRank, //nolint:gocritic // a space is no digit
		"1O":                    LastRank,
		"-99999999999999999999": LastRank,
	} {
		rank, err := ParseRank(map[string]string{RankAnnotation: text})
		if rank != want || (err != nil) != (want == LastRank) {
			t.Errorf("%q: %d, %v", text, rank, err)
		}
		if err != nil && !strings.HasPrefix(err.Error(), "annotation clusterset-dns.github.io/rank: ") {
			t.Errorf("%q: %v", text, err)
		}
	}
	if rank, err := ParseRank(map[string]string{"other": "7"}); rank != 0 || err != nil {
		t.Errorf("without the annotation: %d, %v", rank, err)
	}
}

// TestRankOfAMember: the rank follows the Secret. One that is not valid is told,
// and changes nothing; from the start it gives no precedence.
func TestRankOfAMember(t *testing.T) {
	var connected map[string]*Member
	ranked := func(rank string) (*source, []Problem) {
		credential := secret("a", "west", 0, kubeconfig(aToken, aServer))
		credential.Annotations = map[string]string{RankAnnotation: rank}
		sources, problems := gather(having(credential).of(Config{Cluster: "east"}), nil, nil, connected)
		return sources["west"], problems
	}
	first, problems := ranked("last")
	m := &Member{source: first}
	if m.Rank() != LastRank || len(problems) != 1 ||
		!strings.Contains(problems[0].Err.Error(), `"last" is not an integer from -1000 to 1000`) {
		t.Errorf("not valid from the start: rank %d, problems %v", m.Rank(), problems)
	}
	first, problems = ranked("5")
	m = &Member{source: first}
	if m.Rank() != 5 || len(problems) > 0 {
		t.Errorf("valid: rank %d, problems %v", m.Rank(), problems)
	}
	connected = map[string]*Member{"west": m}
	for _, step := range []struct {
		text string
		want int
	}{{"-3", -3}, {"- 3", -3}, {"4", 4}} {
		next, _ := ranked(step.text)
		if !first.keeps(next) || !first.renew(next) || m.Rank() != step.want {
			t.Errorf("then %q: rank %d, want %d", step.text, m.Rank(), step.want)
		}
	}
}
