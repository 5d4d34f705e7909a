// SPDX-License-Identifier: Apache-2.0

// Package tally counts what clients in pods tell of their connections.
package tally

import (
	"encoding/json"
	"errors"
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

// Attempts are those of a client, or some of them.
type Attempts []Attempt

// Read reads what a client has printed: a line of JSON for each attempt. What else is among the lines is left out.
func Read(printed string) (attempts Attempts, err error) {
	for line := range strings.Lines(printed) {
		if strings.HasPrefix(line, "{") && strings.HasSuffix(line, "\n") { // else it is being written
			var attempt Attempt
			err = errors.Join(err, json.Unmarshal([]byte(line), &attempt))
			attempts = append(attempts, attempt)
		}
	}
	return attempts, err
}

// Lost is how many nobody answered.
func (a Attempts) Lost() (lost int) {
	for _, each := range a {
		if each.Failure != "" {
			lost++
		}
	}
	return lost
}

// Answers counts those that were answered, by who answered.
func (a Attempts) Answers() map[string]int {
	answers := map[string]int{}
	for _, each := range a {
		if each.Failure == "" {
			answers[each.Who]++
		}
	}
	return answers
}

// Who are those that answered, sorted.
func (a Attempts) Who() []string { return slices.Sorted(maps.Keys(a.Answers())) }

// Clusters counts the answers by the cluster that gave them.
func (a Attempts) Clusters() map[string]int {
	clusters := map[string]int{}
	for who, count := range a.Answers() {
		cluster, _, _ := strings.Cut(who, "/")
		clusters[cluster] += count
	}
	return clusters
}

// String is a line such as "east 498, west 502", with failures behind it where there are some.
func (a Attempts) String() string {
	var parts []string
	clusters, failures := a.Clusters(), map[string]int{}
	for _, cluster := range slices.Sorted(maps.Keys(clusters)) {
		parts = append(parts, fmt.Sprintf("%s %d", cluster, clusters[cluster]))
	}
	for _, each := range a {
		if each.Failure != "" {
			failures[each.Failure]++
		}
	}
	for _, failure := range slices.Sorted(maps.Keys(failures)) {
		parts = append(parts, fmt.Sprintf("lost %d (%s)", failures[failure], failure))
	}
	return strings.Join(parts, ", ")
}
