// SPDX-License-Identifier: Apache-2.0

// Package tally counts the attempts that clients in pods report.
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
	// At is the time when it began.
	At time.Time `json:"at"`
	// Who is the answering pod, "<cluster>/<pod>"; empty if there was no answer.
	Who string `json:"who,omitempty"`
	// Failure is the reason if there was no answer.
	Failure string `json:"failure,omitempty"`
}

// Attempts are attempts of a client.
type Attempts []Attempt

// Read parses the output of a client: one line of JSON per attempt. It ignores other lines.
func Read(printed string) (attempts Attempts, err error) {
	for line := range strings.Lines(printed) {
		if strings.HasPrefix(line, "{") && strings.HasSuffix(line, "\n") { // otherwise the line is incomplete
			var attempt Attempt
			err = errors.Join(err, json.Unmarshal([]byte(line), &attempt))
			attempts = append(attempts, attempt)
		}
	}
	return attempts, err
}

// Lost returns the number of attempts without an answer.
func (a Attempts) Lost() (lost int) {
	for _, each := range a {
		if each.Failure != "" {
			lost++
		}
	}
	return lost
}

// Answers counts the answered attempts by pod.
func (a Attempts) Answers() map[string]int {
	answers := map[string]int{}
	for _, each := range a {
		if each.Failure == "" {
			answers[each.Who]++
		}
	}
	return answers
}

// Who returns the answering pods, sorted.
func (a Attempts) Who() []string { return slices.Sorted(maps.Keys(a.Answers())) }

// Clusters counts the answered attempts by cluster.
func (a Attempts) Clusters() map[string]int {
	clusters := map[string]int{}
	for who, count := range a.Answers() {
		cluster, _, _ := strings.Cut(who, "/")
		clusters[cluster] += count
	}
	return clusters
}

// String returns a line such as "east 498, west 502", followed by the failures, if any.
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
