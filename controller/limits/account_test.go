// SPDX-License-Identifier: Apache-2.0

package limits

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

// sized is a slice with so many endpoints.
func sized(name string, endpoints int) *discoveryv1.EndpointSlice {
	slice := &discoveryv1.EndpointSlice{Endpoints: make([]discoveryv1.Endpoint, endpoints)}
	slice.Namespace, slice.Name = "demo", name
	if strings.HasSuffix(name, "/6") {
		slice.AddressType = discoveryv1.AddressTypeIPv6
	}
	return slice
}

func demo(service string) types.NamespacedName {
	return types.NamespacedName{Namespace: "demo", Name: service}
}

// offer offers slices of services in the namespace demo, each as "service/name=endpoints".
func offer(list *List, text string) {
	for _, word := range strings.Fields(text) {
		var endpoints int
		name, count, _ := strings.Cut(word, "=")
		if _, err := fmt.Sscan(count, &endpoints); err != nil {
			panic(err)
		}
		service, _, _ := strings.Cut(name, "/")
		list.Offer(demo(service), sized(name, endpoints))
	}
}

// asked reports whether the account asked for a list, and answers it.
func (a *Account) asked() bool {
	select {
	case <-a.Relist():
		return true
	default:
		return false
	}
}

// counts are the services and endpoints that are admitted or withheld.
func (a *Account) counts() (services, endpoints int) { return len(a.services), a.endpoints }

// TestList: whole services are taken, and what is imported has its place.
func TestList(t *testing.T) {
	for name, test := range map[string]struct {
		limits   string // services, endpoints, and bytes of how many slices with one endpoint, 0 for no limit
		imported string // each as service=endpoints of its copies, without for none
		offered  string // as in offer
		want     string // the slices
		left     string // the limits with a service, those withheld after "~", and "again" if another list is asked for
	}{
		"nothing":            {"1 1 0", "", "", "", ""},
		"all fits":           {"2 5 0", "", "a/1=2 a/2=2 b/1=1", "a/1 a/2 b/1", ""},
		"a service too many": {"2 100 0", "", "a/1=2 b/1=1 c/1=1 d/1=1 a/2=1", "a/1 a/2 b/1", "services=c"},
		"those imported have their place": {
			"2 100 0", "d=1 c=1", "a/1=2 b/1=1 c/1=1 d/1=1", "c/1 d/1", "services=a",
		},
		"more are imported than may": {
			"2 3 0", "a=1 b=1 c=1 d=1", "e/1=1 a/1=1 b/1=1 c/1=1 d/1=1", "a/1 b/1 c/1 d/1", "services=e",
		},
		"imported ones that outgrow the limit are withheld as a whole": {
			"9 6 0", "a=1 b=1 c=2 d=1", "a/1=1 a/2=1 b/1=2 b/2=3 c/1=2 d/1=1 e/1=1", "a/1 a/2 c/1 d/1", "endpoints=b ~b",
		},
		"what is withheld counts as it was":           {"9 5 0", "a=1 b=3", "a/1=2 a/2=1 b/1=5", "", "endpoints=a ~a ~b"},
		"one that is imported is no longer exported":  {"1 100 0", "z=1", "a/1=2", "", "again services=a"},
		"one without copies is imported all the same": {"1 100 0", "z", "a/1=2 z/1=1", "z/1", "services=a"},
		"memory":                                        {"9 9 2", "", "a/1=1 b/1=1 c/1=1", "a/1 b/1", "memory=c"},
		"memory of what is imported":                    {"9 9 2", "c=1 d=1 e=1", "a/1=1 c/1=1 d/1=1 e/1=1", "c/1 d/1 e/1", "memory=a"},
		"an endpoint counts for one family":             {"9 3 0", "", "a/1=3 a/6=3 b/6=1", "a/1 a/6", "endpoints=b"},
		"an endpoint too many, and no new one after it": {"9 4 0", "", "a/1=2 a/2=1 b/1=2 c/1=1", "a/1 a/2", "endpoints=b"},
		"a slice without endpoints counts":              {"9 2 0", "", "a/1=0 b/1=0 c/1=0", "a/1 b/1", "endpoints=c"},
		"the first alone is too much":                   {"9 4 0", "", "a/1=3 a/2=2 a/3=1 b/1=1", "", "endpoints=a"},
		"a slice that is too large": {
			"9 9000 0", "a=1", "a/1=2000 a/2=1 b/1=1 b/2=2000 b/3=1 c/1=1", "c/1", "slice-bytes=a ~a ~b",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var most Limits
			var bytes int
			if _, err := fmt.Sscan(test.limits, &most.Services, &most.Endpoints, &bytes); err != nil {
				t.Fatal(err)
			}
			most.SliceBytes = 4000
			imported := map[types.NamespacedName]Weight{}
			for word := range strings.FieldsSeq(test.imported) {
				service, count, copied := strings.Cut(word, "=")
				imported[demo(service)] = Weight{}
				if endpoints, _ := strconv.Atoi(count); copied {
					imported[demo(service)] = WeightOf(sized("a/1", endpoints))
				}
			}
			var memory *Pool
			if bytes > 0 {
				memory = NewPool(bytes*WeightOf(sized("a/1", 1)).Bytes*16/9 + 16) // of which one member gets 9/16
				memory.SetMembers([]string{"west"})
			}
			a := NewAccount("west", most, memory, imported)
			list := a.List(imported)
			offer(list, test.offered)
			var got, left []string
			for _, each := range list.Slices() {
				got = append(got, each.(*export.Packed).OpenMetadata().Name)
			}
			a.Commit(list)
			if a.asked() {
				left = append(left, "again")
			}
			for limit, service := range a.Excess() {
				left = append(left, string(limit)+"="+strings.TrimPrefix(service, "demo/"))
			}
			for service := range a.withheld {
				left = append(left, "~"+service.Name)
			}
			slices.Sort(got)
			slices.Sort(left)
			if text := strings.Join(got, " "); text != test.want {
				t.Errorf("took %q, want %q", text, test.want)
			}
			if text := strings.Join(left, " "); text != test.left {
				t.Errorf("left out %q, want %q", text, test.left)
			}
		})
	}
}

// TestWhatIsCountedIsHeld: whatever changes and lists a member sends, what is counted is what is held, and within the
// limits.
func TestWhatIsCountedIsHeld(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 3))
		memory := NewPool(40_000)
		memory.SetMembers([]string{"west", "north"})
		limits := Limits{Services: 6, Endpoints: 60, SliceBytes: 4000}
		imported := map[types.NamespacedName]Weight{}
		for i := range random.IntN(4) {
			imported[demo(fmt.Sprint("s", i))] = WeightOf(sized("s/1", 1+random.IntN(10)))
		}
		a := NewAccount("west", limits, memory, imported)
		a.Commit(a.List(imported))
		held := map[string]*discoveryv1.EndpointSlice{} // by service/name
		kept := map[types.NamespacedName]Weight{}       // the least that services with slices count as
		of := func(name string) types.NamespacedName {
			service, _, _ := strings.Cut(name, "/")
			return demo(service)
		}
		for step := range 200 {
			name := fmt.Sprintf("s%d/%d", random.IntN(10), random.IntN(3))
			slice := sized(name, random.IntN(20))
			switch random.IntN(8) {
			case 0:
				copies := map[types.NamespacedName]Weight{}
				for service := range a.services {
					copies[service] = a.services[service].weight()
				}
				list := a.List(copies)
				for i := range random.IntN(30) {
					name := fmt.Sprintf("s%d/%d", random.IntN(10), i)
					list.Offer(of(name), sized(name, random.IntN(12)))
				}
				if random.IntN(4) == 0 {
					a.Abandon()
					break
				}
				clear(held)
				for _, each := range list.Slices() {
					slice := each.(*export.Packed).Open()
					held[slice.Name] = slice
				}
				a.Commit(list)
			case 1, 2:
				a.Remove(of(name), held[name])
				delete(held, name)
			case 3:
				if held[name] != nil { // one whose copies had place before
					kept[of(name)] = Weight{IPv4: random.IntN(a.services[of(name)].slices.Endpoints() + limits.Endpoints - a.endpoints + 1)}
					a.Keep(of(name), kept[of(name)])
				}
			default:
				if a.Admit(of(name), held[name], slice) {
					held[name] = slice
				}
			}
			want := tallyOf(a.withheld)
			for name, slice := range held {
				want.set(of(name), counted{slices: want.services[of(name)].slices.Plus(WeightOf(slice))})
			}
			for service, copies := range kept {
				if _, withheld := a.withheld[service]; withheld || want.services[service].slices == (Weight{}) {
					delete(kept, service)
				} else {
					want.set(service, counted{want.services[service].slices, copies})
				}
			}
			services, endpoints := a.counts()
			if services != len(want.services) || endpoints != want.endpoints || memory.held["west"] != want.bytes {
				t.Fatalf("seed %d, step %d: counted are %d services, %d endpoints, %d bytes; held are %d, %d, %d", seed, step,
					services, endpoints, memory.held["west"], len(want.services), want.endpoints, want.bytes)
			}
			if services > limits.Services || endpoints > limits.Endpoints || memory.held["west"] > 40_000*9/16+8 {
				t.Fatalf("seed %d, step %d: %d services, %d endpoints", seed, step, services, endpoints)
			}
		}
		a.Close()
		if a.Admit(demo("late"), nil, sized("late/1", 1)); memory.held["west"] != 0 {
			t.Fatal("a member that left holds memory")
		}
	}
}

// TestMembersShareTheMemory: a member at the limit keeps what it has, and is listed once anybody gives back. TestRoom has how
// much each may hold.
func TestMembersShareTheMemory(t *testing.T) {
	one := WeightOf(sized("a/1", 1)).Bytes
	memory := NewPool(16 * one)
	memory.SetMembers([]string{"hostile", "honest"})
	hostile, honest := NewAccount("hostile", Default, memory, nil), NewAccount("honest", Default, memory, nil)
	put := func(a *Account, times int) (admitted int) {
		for i := range times {
			if a.Admit(demo(fmt.Sprint(i)), nil, sized("a/1", 1)) {
				admitted++
			}
		}
		return admitted
	}
	if got := put(hostile, 10); got != 9 || hostile.Excess()[Memory] != "demo/9" {
		t.Errorf("%d slices were admitted, and the excess is %v", got, hostile.Excess())
	}
	if got := put(honest, 2); got != 1 {
		t.Errorf("%d slices of another member were admitted, want one: the rest is reserved for those that join later", got)
	}
	hostile.asked()
	honest.asked()
	if hostile.Remove(demo("0"), sized("a/1", 1)); !honest.asked() || !hostile.asked() {
		t.Error("a member is not listed anew although there is room")
	}
}

// TestCopiesHoldTheirPlace: before a member is listed after a restart, what is imported of it is held, so that no other
// member takes its place. TestWhatIsCountedIsHeld has lists that fail.
func TestCopiesHoldTheirPlace(t *testing.T) {
	memory := NewPool(16_000)
	memory.SetMembers([]string{"west", "north"})
	imported := map[types.NamespacedName]Weight{{Name: "a"}: {IPv4: 1, Bytes: 4000}, {Name: "b"}: {IPv4: 1, Bytes: 5000}}
	west := NewAccount("west", Default, memory, imported)
	north := NewAccount("north", Default, memory, nil)
	if north.Admit(demo("a"), nil, sized("a/1", 400)) {
		t.Error("north takes the place of what is imported of west")
	}
	if offer(north.List(nil), "b/1=1"); memory.held["north"] == 0 {
		t.Error("a list claims nothing")
	}
	if west.Commit(west.List(imported)); memory.held["west"] != 0 || !north.asked() {
		t.Error("what west gave back is not free")
	}
}

// TestKeepDuringAList: what a list claims stays claimed while passes over services go on.
func TestKeepDuringAList(t *testing.T) {
	memory, imported := NewPool(16_000), map[types.NamespacedName]Weight{demo("a"): {IPv4: 1, Bytes: 1000}}
	memory.SetMembers([]string{"west"})
	a := NewAccount("west", Default, memory, imported)
	offer(a.List(imported), "b/1=100")
	claimed := memory.held["west"]
	if a.Keep(demo("a"), Weight{}); claimed <= 1000 || memory.held["west"] != claimed {
		t.Errorf("%d of %d bytes are held", memory.held["west"], claimed)
	}
}

// TestCopiesOfNoSlice: a service whose copies were deleted while they counted has its place, and once they exist again, they
// count as what they are.
func TestCopiesOfNoSlice(t *testing.T) {
	a := NewAccount("west", Limits{Services: 1, Endpoints: 10, SliceBytes: 4 << 10}, nil, map[types.NamespacedName]Weight{demo("a"): {}})
	for _, endpoints := range []int{0, 5} {
		a.Keep(demo("a"), Weight{IPv4: endpoints})
		if services, held := a.counts(); services != 1 || held != endpoints {
			t.Errorf("%d services and %d endpoints, want %d", services, held, endpoints)
		}
	}
	if a.Admit(demo("b"), nil, sized("b/1", 1)) {
		t.Error("another service takes its place")
	}
}

// TestRelistsBecomeRare: a member that stays at its limits is listed less and less often, until all of it fits.
func TestRelistsBecomeRare(t *testing.T) {
	a := NewAccount("west", Limits{Services: 1, Endpoints: 10, SliceBytes: 4 << 10}, nil, nil)
	list := func(text string) time.Duration {
		list := a.List(nil)
		offer(list, text)
		a.Commit(list)
		return a.RelistDelay()
	}
	var delays []time.Duration
	for range 20 {
		delays = append(delays, list("a/1=1 b/1=1"))
	}
	if !slices.Equal(delays[:3], []time.Duration{5 * time.Second, 10 * time.Second, 20 * time.Second}) || delays[19] != 10*time.Minute {
		t.Errorf("delays of %v", delays)
	}
	if got := list("a/1=1"); got != 5*time.Second {
		t.Errorf("a delay of %v after all fit", got)
	}
}
