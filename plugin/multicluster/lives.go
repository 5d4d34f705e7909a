// SPDX-License-Identifier: Apache-2.0

package multicluster

import "sync"

// lives are the plugins that were started and not stopped, in the order of their start. A reload starts new ones before
// it stops the old. Where that fails, the server forgets those it had started already and does not stop them: the old
// ones, which it tells, do that.
type lives struct {
	mu      sync.Mutex
	last    int
	running map[int]func()
}

// all are those of this process.
var all lives

// begin notes a start, and returns what ends it; ending twice is as ending once.
func (l *lives) begin(stop func()) (end func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last++
	number := l.last
	if l.running == nil {
		l.running = make(map[int]func())
	}
	l.running[number] = stop
	return func() { l.end(number) }
}

func (l *lives) end(number int) {
	l.mu.Lock()
	stop := l.running[number]
	delete(l.running, number)
	l.mu.Unlock()
	if stop != nil {
		stop()
	}
}

// since returns what ends those that start from now on.
func (l *lives) since() (undo func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	mark := l.last
	return func() { l.endSince(mark) }
}

// endSince ends those that were started after the one with that number.
func (l *lives) endSince(mark int) {
	l.mu.Lock()
	var numbers []int
	for number := range l.running {
		if number > mark {
			numbers = append(numbers, number)
		}
	}
	l.mu.Unlock()
	for _, number := range numbers {
		l.end(number)
	}
}
