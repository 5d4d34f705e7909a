// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"fmt"
	"strings"
	"sync"

	"github.com/clusterset-dns/clusterset-dns/controller"
	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
)

// testBrokenEvents: a watch that ends over and over harms neither what is known
// nor the other members.
func testBrokenEvents(b *bed) {
	g := b.gateway()
	for i, says := range []func(string) string{
		func(event string) string { return "{" + event[:len(event)/2] + "\n" },
		func(event string) string {
			return strings.Replace(event, `"type":"MODIFIED"`, `"type":"EXPLODED"`, 1)
		},
		func(string) string {
			return `{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"InternalError","code":500}}` + "\n"
		},
		func(string) string {
			return `{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410}}` + "\n"
		},
		func(event string) string {
			return strings.Replace(event, `"kind":"EndpointSlice"`, `"kind":"Secret"`, 1)
		},
		func(event string) string {
			return strings.Replace(event, `"resourceVersion":"`, `"resourceVersion":"x`, 1)
		},
	} {
		broken := func(line string) string {
			if !strings.Contains(line, `"`+export.LabelService+`":"solo"`) || !strings.HasPrefix(line, `{"type":"MODIFIED"`) {
				return line
			}
			return says(line)
		}
		before := g.changed.Load()
		g.says.Store(&broken)
		b.endpoints(b.north, "db", "10.66.0.9")
		others := healthy.with("db", "north/10.66.0.9 west/10.65.0.3 -> 10.65.0.3 10.66.0.9")
		// What changes before the watch is there again is no event, but listed.
		for n := 1; g.changed.Load() == before && n < 250; n++ {
			address := fmt.Sprintf("10.65.2%d.%d", i, n)
			b.endpoints(b.west, "solo", address)
			b.expect(others.with("solo", "west/"+address+" -> IP"), b.west, b.north)
		}
		if g.changed.Load() == before {
			b.Error("no event is broken")
		}
		delete(others, "solo") // it may be what it was, or be listed anew
		b.expect(others, b.east)
		g.says.Store(nil)
		b.endpoints(b.west, "solo", "10.65.0.2")
		b.endpoints(b.north, "db", "10.66.0.3")
		b.expect(healthy)
	}
	b.calm()
}

// testSlowMember: it delays no other, and what it says in the end is the end of
// it.
func testSlowMember(b *bed) {
	g := b.gateway()
	release := make(chan struct{})
	slow := func(line string) string {
		<-release
		return line
	}
	g.says.Store(&slow)
	free := sync.OnceFunc(func() {
		g.says.Store(nil)
		close(release)
	})
	b.Cleanup(free)
	for i := range 20 {
		b.endpoints(b.west, "solo", fmt.Sprintf("10.65.1.%d", i+1))
		b.endpoints(b.north, "db", fmt.Sprintf("10.66.1.%d", i+1))
	}
	const db = "north/10.66.1.20 west/10.65.0.3 -> 10.65.0.3 10.66.1.20"
	seen := healthy.with("db", db).with("solo", "west/10.65.1.20 -> IP")
	b.everywhere(seen, map[*cluster]view{b.east: healthy.with("db", db)})
	free()
	b.expect(seen)
	b.calm()
}

// testAddressesThatAMemberMayNotHave are left out, and nothing else is.
func testAddressesThatAMemberMayNotHave(b *bed) {
	p := pair{b.east, b.west}
	b.mayGo([]string{"lone"}, b.east)
	confined := healthy.with("lone", " -> NXDOMAIN")
	b.annotate(b.west, member.CIDRsAnnotation, "10.65.0.0/30, 2001:db8::/32")
	b.everywhere(healthy, map[*cluster]view{b.east: confined})
	// A value that is none opens nothing.
	b.annotate(b.west, member.CIDRsAnnotation, "10.65.0.0")
	b.event(p, controller.EventMemberRefused)
	b.endpoints(b.west, "solo", "10.65.0.1")
	const solo = "west/10.65.0.1 -> IP"
	b.everywhere(healthy.with("solo", solo), map[*cluster]view{b.east: confined.with("solo", solo)})
	b.annotate(b.west, member.CIDRsAnnotation, "10.65.0.0/16")
	b.expect(healthy.with("solo", solo))
	b.calm()
}
