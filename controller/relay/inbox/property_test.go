// SPDX-License-Identifier: Apache-2.0

package inbox

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
)

// cluster is a member that publishes slices and remembers everything.
type cluster struct {
	random  *rand.Rand
	key     string
	counter int64
	now     map[string]Slice[int64]
	// said are all statements about slices, beats all heartbeats, and states the slices at each heartbeat.
	said   []Slice[int64]
	beats  []Heartbeat[string]
	states map[Stamp]map[string]Slice[int64]
}

func newCluster(random *rand.Rand) *cluster {
	return &cluster{
		random: random, key: "k", counter: 100, now: map[string]Slice[int64]{},
		states: map[Stamp]map[string]Slice[int64]{},
	}
}

func (c *cluster) next() int64 {
	c.counter += 1 + c.random.Int64N(3)
	return c.counter
}

// change publishes or deletes a slice, and returns its name.
func (c *cluster) change() string {
	name := string(rune('a' + c.random.IntN(5)))
	if _, exists := c.now[name]; exists && c.random.IntN(3) == 0 {
		delete(c.now, name)
		return name
	}
	c.now[name] = put(name, c.key, c.next())
	c.said = append(c.said, c.now[name])
	return name
}

func (c *cluster) beat() Heartbeat[string] {
	heartbeat := beat(c.key, c.next(), slices.Collect(maps.Values(c.now))...)
	c.beats = append(c.beats, heartbeat)
	c.states[heartbeat.Stamp] = maps.Clone(c.now)
	return heartbeat
}

// reader is what the reader has.
type reader struct {
	t     *testing.T
	of    *cluster
	heard *Heard
	inbox *testInbox
	// listed is the last list with what followed, which counts once a heartbeat vouches for it.
	listed map[string]Slice[int64]
	has    map[string]int64
	last   int64
	highs  map[string]int64 // the highest counter of each slice that the reader had
}

func newReader(t *testing.T, of *cluster) *reader {
	heard := &Heard{}
	return &reader{t: t, of: of, heard: heard, inbox: New[int64, string](heard), has: map[string]int64{}, highs: map[string]int64{}}
}

// begin lists.
func (r *reader) begin(list []Slice[int64]) {
	r.inbox = New[int64, string](r.heard)
	r.listed = map[string]Slice[int64]{}
	for _, slice := range list {
		r.listed[slice.Name.Name] = slice
	}
	r.take(r.inbox.Begin(list))
}

// take takes what counts, and holds it to what the cluster had.
func (r *reader) take(release testRelease) {
	r.t.Helper()
	if release.Listed {
		r.has = map[string]int64{}
		for _, change := range release.Changes {
			delete(r.listed, change.Name.Name) // before anything of the list is used
		}
		for name, slice := range r.listed {
			r.gets(name, slice.Counter)
		}
	}
	for _, change := range release.Changes {
		name := change.Name.Name
		if !change.Deleted {
			r.gets(name, change.Content)
			continue
		}
		if release.Heartbeat == nil {
			r.t.Fatalf("%s ends without a heartbeat", name)
		}
		delete(r.has, name)
	}
	heartbeat := release.Heartbeat
	if heartbeat == nil {
		return
	}
	if heartbeat.Counter < r.last || heartbeat.Counter == r.last && !release.Listed {
		r.t.Fatalf("heartbeat %d counts after %d", heartbeat.Counter, r.last)
	}
	r.last = heartbeat.Counter
	state := r.of.states[heartbeat.Stamp]
	for name, counter := range r.has {
		if counter <= heartbeat.Counter && state[name].Counter != counter {
			r.t.Fatalf("at heartbeat %d slice %s is %d, and was %d", heartbeat.Counter, name, counter, state[name].Counter)
		}
	}
	for name, slice := range state {
		if r.has[name] < slice.Counter {
			r.t.Fatalf("at heartbeat %d slice %s is %d, and was %d", heartbeat.Counter, name, r.has[name], slice.Counter)
		}
	}
}

func (r *reader) gets(name string, counter int64) {
	r.t.Helper()
	if counter < r.highs[name] {
		r.t.Fatalf("slice %s goes back from %d to %d", name, r.highs[name], counter)
	}
	if _, has := r.has[name]; !has && counter <= r.last && r.last > 0 && r.of.states[Stamp{"k", r.last}][name].Counter < counter {
		r.t.Fatalf("slice %s of %d was gone at heartbeat %d", name, counter, r.last)
	}
	r.highs[name], r.has[name] = counter, counter
}

// TestALyingRelay: whatever a relay withholds, repeats, mixes and reorders of what the cluster signed, the reader has
// only states that the cluster had, in their order, or hears nothing.
func TestALyingRelay(t *testing.T) {
	counted := 0
	for seed := range uint64(400) {
		random := rand.New(rand.NewPCG(seed, 1))
		of := newCluster(random)
		r := newReader(t, of)
		r.begin(nil)
		for range 150 {
			switch random.IntN(8) {
			case 0, 1:
				of.change()
			case 2:
				of.beat()
			case 3: // the truth about one slice
				name := string(rune('a' + random.IntN(5)))
				if slice, exists := of.now[name]; exists {
					r.take(r.inbox.Put(slice))
				} else {
					r.take(r.inbox.Delete(named(name)))
				}
			case 4:
				if len(of.said) > 0 {
					r.take(r.inbox.Put(of.said[random.IntN(len(of.said))]))
				}
			case 5:
				r.take(r.inbox.Delete(named(string(rune('a' + random.IntN(5))))))
			case 6:
				if len(of.beats) > 0 {
					r.take(r.inbox.Heartbeat(of.beats[len(of.beats)-1-random.IntN(min(3, len(of.beats)))]))
				}
			case 7:
				if random.IntN(10) > 0 {
					continue
				}
				list := maps.Clone(of.now)
				for _, slice := range of.said {
					if random.IntN(10) == 0 {
						list[slice.Name.Name] = slice
					}
				}
				r.begin(slices.Collect(maps.Values(list)))
			}
			if t.Failed() {
				t.Fatalf("seed %d", seed)
			}
		}
		if r.last > 0 {
			counted++
		}
	}
	if counted < 130 {
		t.Errorf("only %d readers heard anything", counted)
	}
}

// TestAnHonestRelay: a relay that shows each change in its order, and heartbeats in theirs, misses no
// heartbeat for long, although the two may be apart.
func TestAnHonestRelay(t *testing.T) {
	for seed := range uint64(100) {
		random := rand.New(rand.NewPCG(seed, 2))
		of := newCluster(random)
		r := newReader(t, of)
		for range 3 {
			of.change()
		}
		of.beat()
		r.begin(slices.Collect(maps.Values(of.now)))
		var shows []func() testRelease // of the watch of slices
		beats := slices.Clone(of.beats)
		step := func() {
			if len(shows) > 0 && random.IntN(2) == 0 {
				r.take(shows[0]())
				shows = shows[1:]
			} else if len(beats) > 0 {
				r.take(r.inbox.Heartbeat(beats[0]))
				beats = beats[1:]
			}
		}
		for range 100 {
			if random.IntN(3) > 0 {
				name := of.change()
				slice, exists := of.now[name]
				shows = append(shows, func() testRelease {
					if exists {
						return r.inbox.Put(slice)
					}
					return r.inbox.Delete(named(name))
				})
			} else {
				beats = append(beats, of.beat())
			}
			for len(beats) > waitingSize-1 || random.IntN(2) == 0 && len(shows)+len(beats) > 0 {
				step()
			}
		}
		beats = append(beats, of.beat())
		for len(shows)+len(beats) > 0 {
			step()
		}
		if last := of.beats[len(of.beats)-1].Counter; r.last != last {
			t.Fatalf("seed %d: heard %d, not %d", seed, r.last, last)
		}
		want := map[string]int64{}
		for name, slice := range of.now {
			want[name] = slice.Counter
		}
		if !maps.Equal(r.has, want) {
			t.Fatalf("seed %d: has %v, not %v", seed, r.has, want)
		}
		if len(r.inbox.pending) != 0 || r.inbox.Len() != len(want) {
			t.Fatalf("seed %d: %d slices wait, and %d are known", seed, len(r.inbox.pending), r.inbox.Len())
		}
	}
}
