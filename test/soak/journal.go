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
	out io.Writer // for reading
	log io.Writer // for all that happens
	// changed is the name of the service that is being changed, or was last.
	changed atomic.Pointer[string]

	mu     sync.Mutex
	counts map[string]int
	wrongs int
	first  string // of them
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
	if j.wrongs++; j.first == "" {
		j.first = fmt.Sprintf(format, args...)
	}
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

// firstWrong is what was wrong first, empty if nothing was.
func (j *journal) firstWrong() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.first
}

// sayCounts prints the counts, sorted by kind.
func (j *journal) sayCounts() {
	j.mu.Lock()
	counts := maps.Clone(j.counts)
	j.mu.Unlock()
	for _, kind := range slices.Sorted(maps.Keys(counts)) {
		j.say("%7d  %s", counts[kind], kind)
	}
}
