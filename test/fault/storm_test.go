// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
)

// rounds is how often the controllers are killed.
const rounds = 100

// seedVariable is the environment variable that repeats a storm.
const seedVariable = "FAULT_SEED"

// TestStorm kills the controllers of west and east at random points of a storm
// of writes: before one of their own writes, or after it and before its answer
// is read. After each round, all clusters have the merge of what is exported.
func TestStorm(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv(seedVariable); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("%s: %v", seedVariable, err)
		}
	}
	t.Logf("%s=%d", seedVariable, seed)
	b := newBed(t)
	b.services = nil // it has its own
	b.sub("both controllers are killed at random points", func(b *bed) { testStorm(b, rand.New(rand.NewPCG(seed, 0))) })
}

// A storm is what is written, and what must come of it.
type storm struct {
	*bed
	random *rand.Rand
	// exports are the addresses of the services that a cluster exports.
	exports map[*cluster]map[string]string
	writes  int
	// fuses are those of the controllers that run.
	fuses map[*cluster]*fuse
	// blown counts the controllers that were killed by a write.
	blown int
}

// The services of the storm: the last ones are headless.
var stormy = []string{"ip-0", "ip-1", "headless-0", "headless-1"}

func testStorm(b *bed, random *rand.Rand) {
	s := &storm{bed: b, random: random, exports: map[*cluster]map[string]string{}, fuses: map[*cluster]*fuse{}}
	b.reset()
	for _, c := range b.all() {
		s.exports[c] = map[string]string{}
		for _, name := range stormy {
			b.service(c, name, strings.HasPrefix(name, "headless"))
			s.put(c, name)
		}
		b.start(c)
	}
	b.beat(b.pairs()...)
	b.expect(s.view())
	b.mayGo(stormy)
	b.watchAnswers(stormy...)
	victims := []*cluster{b.east, b.west}
	for range rounds {
		for _, c := range victims {
			if s.fuses[c] == nil {
				c.stop()
				s.startWithFuse(c)
			}
			s.fuses[c].light(random.IntN(12), random.IntN(2) == 0)
		}
		for range 1 + random.IntN(6) {
			s.write()
		}
		for _, c := range victims {
			s.kill(c)
		}
		// One more is waiting for them at the start.
		s.write()
		for _, c := range victims {
			s.startWithFuse(c)
		}
		b.arrives(s.view()) // a change that a list told waits for a heartbeat
	}
	for _, c := range victims {
		if !s.fuses[c].isBlown() {
			continue
		}
		b.Errorf("the controller of %s is dead at the end", c.Name())
	}
	b.Logf("%d rounds, %d writes, %d controllers killed, %d of them by a write of theirs", rounds, s.writes, rounds*len(victims), s.blown)
	b.calm()
}

// write changes one thing. No cluster ever loses most of its exports, which
// would not be believed at once.
func (s *storm) write() {
	s.Helper()
	c := s.all()[s.random.IntN(3)]
	name := stormy[s.random.IntN(len(stormy))]
	switch _, is := s.exports[c][name]; {
	case is && len(s.exports[c]) == len(stormy) && s.random.IntN(3) == 0:
		delete(s.exports[c], name)
		s.unexport(c, name)
		s.writes++
	default:
		s.put(c, name)
	}
}

// put exports a service with another endpoint.
func (s *storm) put(c *cluster, name string) {
	s.Helper()
	s.writes++
	address := fmt.Sprintf("10.%d.%d.%d", 65+slices.Index(s.all(), c), 1+s.writes/250, 1+s.writes%250)
	s.endpoints(c, name, address)
	if _, is := s.exports[c][name]; !is {
		s.export(c, name)
	}
	s.exports[c][name] = address
}

// view is what must come of it.
func (s *storm) view() view {
	merged := view{}
	for _, name := range stormy {
		var endpoints, addresses []string
		for _, c := range s.all() {
			if address, is := s.exports[c][name]; is {
				endpoints, addresses = append(endpoints, c.Name()+"/"+address), append(addresses, address)
			}
		}
		slices.Sort(endpoints)
		slices.Sort(addresses)
		switch {
		case len(endpoints) == 0:
			merged[name] = gone
		case strings.HasPrefix(name, "headless"):
			merged[name] = strings.Join(endpoints, " ") + " -> " + strings.Join(addresses, " ")
		default:
			merged[name] = strings.Join(endpoints, " ") + " -> IP"
		}
	}
	return merged
}

// startWithFuse starts a controller that can be killed at one of its writes.
func (s *storm) startWithFuse(c *cluster) {
	f := &fuse{left: -1, blown: make(chan struct{})}
	plain := c.options.Config
	c.options.Config = rest.CopyConfig(plain)
	c.options.Config.Wrap(transport.WrapperFunc(func(next http.RoundTripper) http.RoundTripper { return &fused{next, f} }))
	s.start(c)
	c.options.Config = plain
	s.fuses[c] = f
}

// kill ends a controller: by the write that it dies of, or where it comes to
// none, as it is. It writes nothing any more either way, not even that it ends.
func (s *storm) kill(c *cluster) {
	f := s.fuses[c]
	select {
	case <-f.blown:
		s.blown++
	case <-time.After(time.Duration(s.random.IntN(30)) * time.Millisecond):
		f.blow()
	}
	c.stop()
	delete(s.fuses, c)
}

// A fuse is what kills a controller after a number of writes.
type fuse struct {
	mu sync.Mutex
	// left is how many writes are let through; negative for all.
	left int
	// after tells that the last write reaches the API server.
	after bool
	blown chan struct{}
}

// light lets so many writes through from now on.
func (f *fuse) light(left int, after bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.left, f.after = left, after
}

func (f *fuse) blow() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.isBlown() {
		close(f.blown)
	}
}

func (f *fuse) isBlown() bool {
	select {
	case <-f.blown:
		return true
	default:
		return false
	}
}

// pass tells whether a request may be sent, and whether its answer may be read.
func (f *fuse) pass(request *http.Request) (sent, read bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.isBlown():
		return false, false
	case f.left < 0 || request.Method == http.MethodGet:
		return true, true
	case f.left > 0:
		f.left--
		return true, true
	}
	close(f.blown)
	return f.after, false
}

// fused is a transport with a fuse.
type fused struct {
	next http.RoundTripper
	fuse *fuse
}

var errKilled = errors.New("the program was killed")

func (t *fused) RoundTrip(request *http.Request) (*http.Response, error) {
	sent, read := t.fuse.pass(request)
	if !sent {
		return nil, errKilled
	}
	response, err := t.next.RoundTrip(request)
	if err != nil || read {
		return response, err
	}
	if err := response.Body.Close(); err != nil {
		return nil, err
	}
	return nil, errKilled
}
