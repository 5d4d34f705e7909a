// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// mostWrong is how many wrong answers are printed in full.
const mostWrong = 50

// A journal counts what is done, and writes it down.
type journal struct {
	out io.Writer // for people
	log io.Writer // for all that happens
	// changed is the name of the service that is being changed, or was last.
	changed atomic.Pointer[string]

	mu     sync.Mutex
	counts map[string]int
	wrongs int
}

func newJournal(out, log io.Writer) *journal {
	return &journal{out: out, log: log, counts: map[string]int{}}
}

// say prints a line.
func (j *journal) say(format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	fmt.Fprintf(j.out, format+"\n", args...)
	j.write(format, args...)
}

// note writes a line to the log alone.
func (j *journal) note(format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.write(format, args...)
}

func (j *journal) write(format string, args ...any) {
	fmt.Fprintf(j.log, time.Now().UTC().Format("15:04:05.000")+" "+format+"\n", args...)
}

// count adds one to what is done of a kind.
func (j *journal) count(kind string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.counts[kind]++
}

// wrong notes something that must not be.
func (j *journal) wrong(format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.wrongs++
	j.write("WRONG "+format, args...)
	if j.wrongs <= mostWrong {
		fmt.Fprintf(j.out, "WRONG "+format+"\n", args...)
	}
}

func (j *journal) wrongCount() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.wrongs
}

// A kindCount is how often something was done.
type kindCount struct {
	kind  string
	count int
}

// kinds are the counts, sorted by kind.
func (j *journal) kinds() []kindCount {
	j.mu.Lock()
	defer j.mu.Unlock()
	var all []kindCount
	for _, kind := range slices.Sorted(maps.Keys(j.counts)) {
		all = append(all, kindCount{kind, j.counts[kind]})
	}
	return all
}
