// SPDX-License-Identifier: Apache-2.0

// Package tally holds what clients in pods tell of their connections, and what can be computed of it.
package tally

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
)

// Attempt is one connection, or one exchange of datagrams.
type Attempt struct {
	// At is when it began.
	At time.Time `json:"at"`
	// Who answered: "<cluster>/<pod>". Empty where nobody did.
	Who string `json:"who,omitempty"`
	// Failure says why nobody answered.
	Failure string `json:"failure,omitempty"`
}

// Tally counts attempts.
type Tally struct {
	// Answers counts those that were answered, by who answered.
	Answers map[string]int `json:"answers"`
	// Failures counts the others, by the reason.
	Failures map[string]int `json:"failures"`
}

// New counts the given attempts.
func New(attempts ...Attempt) *Tally {
	t := &Tally{Answers: map[string]int{}, Failures: map[string]int{}}
	for _, attempt := range attempts {
		t.Add(attempt)
	}
	return t
}

// Add counts one more.
func (t *Tally) Add(attempt Attempt) {
	if attempt.Failure != "" {
		t.Failures[attempt.Failure]++
	} else {
		t.Answers[attempt.Who]++
	}
}

// Total is the number of all attempts.
func (t *Tally) Total() int { return t.Answered() + t.Lost() }

// Answered is the number of attempts that were answered.
func (t *Tally) Answered() int { return sum(t.Answers) }

// Lost is the number of attempts that nobody answered.
func (t *Tally) Lost() int { return sum(t.Failures) }

func sum(counts map[string]int) (total int) {
	for _, count := range counts {
		total += count
	}
	return total
}

// Who are those that answered, sorted.
func (t *Tally) Who() []string { return slices.Sorted(maps.Keys(t.Answers)) }

// Clusters counts the answers by the cluster that gave them.
func (t *Tally) Clusters() map[string]int {
	clusters := map[string]int{}
	for who, count := range t.Answers {
		cluster, _, _ := strings.Cut(who, "/")
		clusters[cluster] += count
	}
	return clusters
}

// String is a line such as "east 498, west 502", with failures behind it where there are some.
func (t *Tally) String() string {
	clusters := t.Clusters()
	var parts []string
	for _, cluster := range slices.Sorted(maps.Keys(clusters)) {
		parts = append(parts, fmt.Sprintf("%s %d", cluster, clusters[cluster]))
	}
	for _, failure := range slices.Sorted(maps.Keys(t.Failures)) {
		parts = append(parts, fmt.Sprintf("lost %d (%s)", t.Failures[failure], failure))
	}
	return strings.Join(parts, ", ")
}

// EvenChance is the probability that as uneven answers as these, or less even ones, come of an even choice among
// the given number of those who may answer: the chi-squared test. More than those having answered makes it 0.
func (t *Tally) EvenChance(among int) float64 {
	if len(t.Answers) > among || among < 1 || t.Answered() == 0 {
		return 0
	}
	if among == 1 {
		return 1
	}
	expected := float64(t.Answered()) / float64(among)
	statistic := float64(among-len(t.Answers)) * expected // of those that never answered
	for _, count := range t.Answers {
		statistic += (float64(count) - expected) * (float64(count) - expected) / expected
	}
	return upperGamma(float64(among-1)/2, statistic/2)
}

// upperGamma is the regularized upper incomplete gamma function Q(a, x) for a that is half of a whole number, a > 0, x >= 0:
// Q(1, x) = e^-x, Q(1/2, x) = erfc(√x), and Q(a+1, x) = Q(a, x) + x^a e^-x / Γ(a+1).
func upperGamma(a, x float64) float64 {
	at, value := 1.0, math.Exp(-x)
	if a != math.Trunc(a) {
		at, value = 0.5, math.Erfc(math.Sqrt(x))
	}
	for ; at < a; at++ {
		value += math.Pow(x, at) * math.Exp(-x) / math.Gamma(at+1)
	}
	return value
}
