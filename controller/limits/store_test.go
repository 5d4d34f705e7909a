// SPDX-License-Identifier: Apache-2.0

package limits

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

// sized is a slice with so many endpoints, "service/name" or "service".
func sized(name string, endpoints int) *discoveryv1.EndpointSlice {
	slice := &discoveryv1.EndpointSlice{Endpoints: make([]discoveryv1.Endpoint, endpoints)}
	service, _, _ := strings.Cut(name, "/")
	slice.Namespace, slice.Name, slice.Labels = "demo", name, map[string]string{export.LabelService: service}
	return slice
}

// parsed reads a slice: "name=endpoints", with "@" and a resourceVersion, and with "!" if it is too large.
func parsed(word string) *discoveryv1.EndpointSlice {
	word, large := strings.CutSuffix(word, "!")
	word, version, _ := strings.Cut(word, "@")
	name, count, _ := strings.Cut(word, "=")
	endpoints, _ := strconv.Atoi(count)
	slice := sized(name, endpoints)
	slice.ResourceVersion = version
	if large {
		slice.Annotations = map[string]string{export.AnnotationSnapshotPrefix + "v1": strings.Repeat("x", 4<<10)}
	}
	return slice
}

func demo(service string) types.NamespacedName {
	return types.NamespacedName{Namespace: "demo", Name: service}
}

// list begins a list, and offers it slices.
func (s *Store) list(imported map[types.NamespacedName]Weight, offered string) *List {
	list := s.BeginList(imported)
	for word := range strings.FieldsSeq(offered) {
		list.Offer(parsed(word))
	}
	return list
}

// held returns the slices, each with its service if it moved there from another one.
func (s *Store) held() string {
	var all []string
	for _, service := range s.Services() {
		published, _ := s.Read(service)
		for _, slice := range export.OpenAll(published) {
			name := slice.Name
			if !strings.HasPrefix(name, service.Name) {
				name = service.Name + ":" + name
			}
			all = append(all, fmt.Sprintf("%s=%d", name, len(slice.Endpoints)))
		}
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// names returns those of services, sorted.
func names(services []types.NamespacedName) string {
	var all []string
	for _, service := range services {
		all = append(all, service.Name)
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// TestStore plays lists and watches of a member, and checks after each step which services changed and which slices are stored.
func TestStore(t *testing.T) {
	type step struct{ do, changed, held string }
	for name, steps := range map[string][]step{
		"within the limits": {
			{"list", "", ""},
			{"put web/a=2@2", "web", "web/a=2"},
			{"put web/a=3@3", "web", "web/a=3"},
			{"put web/a=3@3", "", "web/a=3"},
			{"put db/b=1", "db", "db/b=1 web/a=3"},
			{"move db/b=1 web", "db web", "web/a=3 web:db/b=1"},
			{"move web/c=1", "", "web/a=3 web:db/b=1"}, // it is of no service
			{"list web/a=3@3 db/b=1@5 =1", "db web", "db/b=1 web/a=3"},
			{"list web/a=3@3 db/b=1@5 =1", "", "db/b=1 web/a=3"},
			{"list web/a=4@3 db/b=1@5", "web", "db/b=1 web/a=4"}, // after a restore of etcd
			{"put web/a=3@3", "web", "db/b=1 web/a=3"},           // likewise
			{"list db/b=1@6 db/b=2@6 mq/d=1@6", "db mq web", "db/b=1 mq/d=1"},
			{"delete db/b=1", "db", "mq/d=1"},
			{"delete web/z=1", "", "mq/d=1"},
			{"move mq/d=1", "mq", ""},
		},
		"beyond the limits": {
			{"list a=2 b=3", "a b", "a=2 b=3"},
			{"put c=1", "c", "a=2 b=3 c=1"},
			{"put d=1", "", "a=2 b=3 c=1"}, // a service too many
			{"delete d", "", "a=2 b=3 c=1"},
			{"put a=6", "a", "a=6 b=3 c=1"},
			{"put a=7", "", "a=6 b=3 c=1"}, // an endpoint too many
			{"put a/more=1", "", "a=6 b=3 c=1"},
			{"put b=3", "b", "a=6 b=3 c=1"}, // it does not grow
			{"put b=2", "b", "a=6 b=2 c=1"},
			{"delete c", "c", "a=6 b=2"},
			{"list a=6 b=2 c/1=1 c/2=2", "a b", "a=6 b=2"},
			{"put c/1=1", "", "a=6 b=2"},      // it would fit, without the rest of its service
			{"import y=2 z=2", "", "a=6 b=2"}, // before all others, whatever their names
			{"list a=2 b=2 c=2 y=2 z/1=2 z/2=2 =1", "a b c y z", "a=2 y=2 z/1=2 z/2=2"},
			{"import a=2 b=2", "", "a=2 y=2 z/1=2 z/2=2"}, // more services than the limit, all still exported
			{"list a=2 b=2 c=2 y=2 z/1=2 z/2=2", "b", "a=2 b=2 y=2 z/1=2 z/2=2"},
			{"list a=2 b=2 c=2 y=2 z/1=3 z/2=2", "z", "a=2 b=2 y=2"},
			{"withholds z", "", "a=2 b=2 y=2"},
			{"delete y", "y", "a=2 b=2"},
			{"put z/1=2", "", "a=2 b=2"}, // only a list admits the whole service again
			{"delete z/1", "", "a=2 b=2"},
			{"list a=2", "b z", "a=2"},
			{"put c=1", "c", "a=2 c=1"},
			{"delete c", "c", "a=2"},
			{"put a=2!", "", "a=2"},
			{"put b=2!", "", "a=2"},
			{"put b/more=1", "", "a=2"},
			{"put a=1", "a", "a=1"},
			{"list a=1 b/a=1 b=2! b/z=1", "a b", "a=1"},
			{"list a=2! b=2!", "a b", ""},
			{"put c=2!", "", ""},
			{"put d=2!", "", ""},
			{"counts 3", "", ""}, // however many services have a slice that is too large
			{"move a=1", "", ""},
			{"list", "a b c", ""},
		},
	} {
		t.Run(name, func(t *testing.T) {
			memory := NewPool(1 << 30)
			s := NewStore("west", Limits{Services: 3, Endpoints: 10, SliceBytes: 4 << 10}, memory, nil)
			imported := map[types.NamespacedName]Weight{}
			if _, complete := s.Read(demo("a")); complete || s.Synced() {
				t.Error("it is complete before the first list")
			}
			for i, step := range steps {
				var changed []types.NamespacedName
				verb, rest, _ := strings.Cut(step.do, " ")
				word, service, _ := strings.Cut(rest, " ")
				slice := parsed(word)
				if slice.ResourceVersion == "" {
					slice.ResourceVersion = fmt.Sprint(100 + i)
				}
				switch verb {
				case "put":
					changed = s.Put(slice)
				case "move":
					slice.Labels[export.LabelService] = service
					changed = s.Put(slice)
				case "delete":
					changed = s.Remove(slice)
				case "import":
					for word := range strings.FieldsSeq(rest) {
						imported[export.ServiceOf(parsed(word))] = WeightOf(parsed(word))
					}
				case "list":
					changed = s.Show(s.list(imported, rest))
				case "counts":
					if got := fmt.Sprint(len(s.services)); got != rest {
						t.Errorf("%s services are counted, want %s", got, rest)
					}
				case "withholds":
					for _, name := range []string{"a", "b", "y", "z"} {
						if _, complete := s.Read(demo(name)); complete != (name != rest) {
							t.Errorf("%s is complete: %t", name, complete)
						}
					}
				}
				got := names(changed)
				if got != step.changed || s.held() != step.held {
					t.Errorf("%d, %s: changed are %q, want %q; held is %q, want %q", i, step.do, got, step.changed, s.held(), step.held)
				}
				if s.Published() != len(strings.Fields(step.held)) {
					t.Errorf("%d, %s: %d are counted", i, step.do, s.Published())
				}
			}
			if used, _ := memory.Use(); used != 0 {
				t.Errorf("counts %d bytes", used)
			}
		})
	}
}

// TestList: whole services are admitted, and imported ones have their place.
func TestList(t *testing.T) {
	for name, test := range map[string]struct {
		limits   string // services, endpoints, and bytes of how many slices with one endpoint, 0 for no limit
		imported string // each as service=endpoints of its copies, without for none
		offered  string // as in offer
		want     string // the slices
		left     string // the limits with a service, and those withheld after "~"
	}{
		"a service too many": {"2 100 0", "", "a/1=2 b/1=1 c/1=1 d/1=1 a/2=1", "a/1 a/2 b/1", "services=c"},
		"those imported have their place": {
			"2 100 0", "d=1 c=1", "a/1=2 b/1=1 c/1=1 d/1=1", "c/1 d/1", "services=a",
		},
		"more are imported than may": {
			"2 3 0", "a=1 b=1 c=1 d=1", "e/1=1 a/1=1 b/1=1 c/1=1 d/1=1", "a/1 b/1 c/1 d/1", "services=e",
		},
		"imported ones that outgrow the limit are withheld as a whole": {
			"9 6 0", "a=1 b=1 c=2 d=1", "a/1=1 a/2=1 b/1=2 b/2=3 c/1=2 d/1=1 e/1=1", "a/1 a/2 c/1 d/1", "endpoints=b ~b ~e",
		},
		"what is withheld counts as it was":                {"9 5 0", "a=1 b=3", "a/1=2 a/2=1 b/1=5", "", "endpoints=a ~a ~b"},
		"one that is imported is no longer exported":       {"1 100 0", "z=1", "a/1=2", "", "services=a"},
		"one without copies is imported all the same":      {"1 100 0", "z", "a/1=2 z/1=1", "z/1", "services=a"},
		"memory of what is imported":                       {"9 9 2", "c=1 d=1 e=1", "a/1=1 c/1=1 d/1=1 e/1=1", "c/1 d/1 e/1", "memory=a ~a"},
		"an endpoint too many, and one after it that fits": {"9 4 0", "", "a/1=2 a/2=1 b/1=2 c/1=1", "a/1 a/2 c/1", "endpoints=b ~b"},
		"a slice without endpoints counts":                 {"9 2 0", "", "a/1=0 b/1=0 c/1=0", "a/1 b/1", "endpoints=c ~c"},
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
			memory := NewPool(1 << 30)
			if bytes > 0 {
				memory = NewPool(bytes*WeightOf(sized("a/1", 1)).Bytes*16/9 + 16) // of which one member gets 9/16
				memory.SetMembers([]string{"west"})
			}
			s := NewStore("west", most, memory, imported)
			list := s.list(imported, test.offered)
			s.Show(list)
			var left []string
			for limit, service := range s.Excess() {
				left = append(left, string(limit)+"="+strings.TrimPrefix(service, "demo/"))
			}
			for service, is := range s.services {
				if is.withheld {
					left = append(left, "~"+service.Name)
				}
				if !slices.Contains(list.Services(), service) {
					t.Errorf("the list lacks %s", service)
				}
			}
			slices.Sort(left)
			if text := regexp.MustCompile(`=\d+`).ReplaceAllString(s.held(), ""); text != test.want {
				t.Errorf("took %q, want %q", text, test.want)
			}
			if text := strings.Join(left, " "); text != test.left {
				t.Errorf("left out %q, want %q", text, test.left)
			}
		})
	}
}

// TestWhatIsCountedIsHeld: after any changes and lists of a member, the counts match the stored slices and are within the
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
		s := NewStore("west", limits, memory, imported)
		s.Show(s.list(imported, ""))
		kept := map[types.NamespacedName]Weight{} // the least that services with slices count as
		for step := range 200 {
			slice := sized(fmt.Sprintf("s%d/%d", random.IntN(10), random.IntN(3)), random.IntN(20))
			name := export.ServiceOf(slice)
			switch random.IntN(8) {
			case 0:
				copies := map[types.NamespacedName]Weight{}
				for name, is := range s.services {
					copies[name] = is.counts()
				}
				list := s.list(copies, "")
				for i := range random.IntN(30) {
					list.Offer(sized(fmt.Sprintf("s%d/%d", random.IntN(10), i), random.IntN(12)))
				}
				if random.IntN(4) == 0 {
					s.BeginList(nil)
				} else {
					s.Show(list)
				}
			case 1, 2:
				s.Remove(slice)
			case 3:
				if is := s.services[name]; len(is.slices) > 0 { // a service that counted its copies before
					kept[name] = Weight{Endpoints: random.IntN(is.weight.Endpoints + limits.Endpoints - s.endpoints + 1)}
					s.CountCopies(name, kept[name])
				}
			default:
				s.Put(slice)
			}
			want, published := placesOf(nil), 0
			maps.DeleteFunc(kept, func(name types.NamespacedName, _ Weight) bool { return len(s.services[name].slices) == 0 })
			for name, is := range s.services {
				if len(is.slices) > 0 {
					is.weight, is.least = Weight{}, kept[name]
				}
				packed, _ := s.Read(name)
				for _, slice := range export.OpenAll(packed) {
					is.weight = is.weight.Plus(WeightOf(slice))
				}
				published += len(packed)
				want.set(name, is)
			}
			if s.endpoints != want.endpoints || memory.held["west"] != want.bytes || published != s.Published() {
				t.Fatalf("seed %d, step %d: counted are %d endpoints, %d bytes, %d slices; held are %d, %d, %d", seed, step,
					s.endpoints, memory.held["west"], s.Published(), want.endpoints, want.bytes, published)
			}
			if len(s.services) > limits.Services || s.endpoints > limits.Endpoints || memory.held["west"] > 40_000*9/16+8 {
				t.Fatalf("seed %d, step %d: %d services, %d endpoints", seed, step, len(s.services), s.endpoints)
			}
		}
		s.Close()
		if s.Put(sized("late/1", 1)); memory.held["west"] != 0 {
			t.Fatal("a member that left holds memory")
		}
	}
}

// TestRefusedIsNotHeld: nothing references a slice that any limit refuses, because its memory is not counted.
func TestRefusedIsNotHeld(t *testing.T) {
	memory := NewPool(1 << 14)
	memory.SetMembers([]string{"west"})
	s := NewStore("west", Limits{Services: 3, Endpoints: 10, SliceBytes: 4 << 10}, memory, nil)
	for _, word := range []string{"a/1=1", "a/2=1", "a/3=1"} { // the array of three slices has room for four
		s.Put(parsed(word))
	}
	memory.total = memory.held["west"]
	for limit, refused := range map[Limit]string{SliceBytes: "a/4=1!", Endpoints: "a/4=9", Memory: "a/4=1"} {
		all := s.services[demo("a")].slices
		if changed := s.Put(parsed(refused)); changed != nil || s.Excess()[limit] == "" {
			t.Fatalf("%s: %s changed, and the excess is %v", limit, changed, s.Excess())
		}
		if cap(all) == len(all) || all[:len(all)+1][len(all)] != nil {
			t.Errorf("%s: the refused slice is kept", limit)
		}
	}
}

// TestMembersShareTheMemory: a member at the limit keeps its slices, and another one has its part. TestRoom covers the amounts.
func TestMembersShareTheMemory(t *testing.T) {
	one := WeightOf(sized("0", 1)).Bytes
	memory := NewPool(16 * one)
	memory.SetMembers([]string{"hostile", "honest"})
	hostile, honest := NewStore("hostile", Default, memory, nil), NewStore("honest", Default, memory, nil)
	put := func(s *Store, times int) (admitted int) {
		for i := range times {
			if len(s.Put(sized(fmt.Sprint(i), 1))) > 0 {
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
}

// TestCopiesHoldTheirPlace: after a restart, before a member is listed, its imported services count, so that no other
// member takes their place. TestWhatIsCountedIsHeld covers failed lists.
func TestCopiesHoldTheirPlace(t *testing.T) {
	memory := NewPool(16_000)
	memory.SetMembers([]string{"west", "north"})
	imported := map[types.NamespacedName]Weight{{Name: "a"}: {Endpoints: 1, Bytes: 4000}, {Name: "b"}: {Endpoints: 1, Bytes: 5000}}
	west := NewStore("west", Default, memory, imported)
	north := NewStore("north", Default, memory, nil)
	if len(north.Put(sized("a/1", 400))) > 0 {
		t.Error("north takes the place of what is imported of west")
	}
	if north.list(nil, "b/1=1"); memory.held["north"] == 0 {
		t.Error("a list claims nothing")
	}
	if west.Show(west.list(imported, "")); memory.held["west"] != 0 {
		t.Error("what west gave back is not free")
	}
}

// TestKeepDuringAList: the memory that a list claims stays claimed during passes over services.
func TestKeepDuringAList(t *testing.T) {
	memory, imported := NewPool(16_000), map[types.NamespacedName]Weight{demo("a"): {Endpoints: 1, Bytes: 1000}}
	memory.SetMembers([]string{"west"})
	s := NewStore("west", Default, memory, imported)
	s.list(imported, "b/1=100")
	claimed := memory.held["west"]
	if s.CountCopies(demo("a"), Weight{}); claimed <= 1000 || memory.held["west"] != claimed {
		t.Errorf("%d of %d bytes are held", memory.held["west"], claimed)
	}
}
