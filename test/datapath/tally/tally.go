// SPDX-License-Identifier: Apache-2.0

// Package tally counts what clients in pods tell of their connections.
package tally

import (
	"fmt"
	"maps"
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
