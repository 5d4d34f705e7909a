// SPDX-License-Identifier: Apache-2.0

package member

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/limits"
)

// sized is a slice "name" of service "name", or "service/name", with so many endpoints.
func sized(name string, endpoints int) *discoveryv1.EndpointSlice {
	service, name, found := strings.Cut(name, "/")
	if !found {
		name = service
	}
	one := slice(name, service, fmt.Sprint(endpoints))
	one.Endpoints = make([]discoveryv1.Endpoint, endpoints)
	return one
}

// pages is a server that answers lists in pages, and too large a page with an error.
type pages struct {
	slices []*discoveryv1.EndpointSlice
	most   int64
	// err is that of a page with more slices than most; nil means that it is too large.
	err   error
	asked []int64
}

func (p *pages) List(_ context.Context, options metav1.ListOptions) (*discoveryv1.EndpointSliceList, error) {
	p.asked = append(p.asked, options.Limit)
	if options.Limit > p.most {
		return nil, &url.Error{Op: "Get", URL: "https://west", Err: cmp.Or(p.err, errTooLarge)}
	}
	from := 0
	if options.Continue != "" {
		if _, err := fmt.Sscan(options.Continue, &from); err != nil {
			return nil, err
		}
	}
	list := &discoveryv1.EndpointSliceList{}
	to := min(len(p.slices), from+int(options.Limit))
	for _, each := range p.slices[from:to] {
		list.Items = append(list.Items, *each.DeepCopy())
	}
	list.ResourceVersion = "7"
	if to < len(p.slices) {
		list.Continue = fmt.Sprint(to)
	}
	return list, nil
}

// confirmed confirms a list.
func confirmed() error { return nil }

func (p *pages) Watch(context.Context, metav1.ListOptions) (watch.Interface, error) {
	return watch.NewFake(), nil
}

// TestLimits plays what a reflector does with a member that exceeds its limits.
func TestLimits(t *testing.T) {
	var told []string
	var listed []string
	store := newSliceStore(func(service types.NamespacedName) { told = append(told, service.Name) }, func() {})
	store.account = limits.NewAccount("west", limits.Limits{Services: 3, Endpoints: 10, SliceBytes: 4 << 10}, nil, nil)
	imported := map[types.NamespacedName]limits.Weight{}
	store.imported = func() map[types.NamespacedName]limits.Weight { return maps.Clone(imported) }
	store.listing = func(services []types.NamespacedName) {
		listed = nil
		for _, service := range services {
			listed = append(listed, service.Name)
		}
		slices.Sort(listed)
	}
	excess := func() string {
		var texts []string
		for limit, of := range store.account.Excess() {
			texts = append(texts, string(limit)+" "+of)
		}
		slices.Sort(texts)
		return strings.Join(texts, ", ")
	}
	room := func() bool {
		select {
		case <-store.account.Relist():
			return true
		default:
			return false
		}
	}
	step := func(name string, do func() error, wantTold, wantHeld, wantReport string, wantRoom bool) {
		t.Helper()
		told = nil
		before := store.account.Excess()
		if err := do(); err != nil {
			t.Fatal(err)
		}
		slices.Sort(told)
		var held []string
		for _, service := range store.services() {
			for _, each := range store.of(service) {
				held = append(held, fmt.Sprintf("%s/%s=%d", service.Name, each.Name, len(each.Endpoints)))
			}
		}
		slices.Sort(held)
		if got := strings.Join(told, " "); got != wantTold {
			t.Errorf("%s: told %q, want %q", name, got, wantTold)
		}
		if got := strings.Join(held, " "); got != wantHeld {
			t.Errorf("%s: holds %q, want %q", name, got, wantHeld)
		}
		is := store.account.Excess()
		reported := len(is) > 0 && !slices.Equal(slices.Sorted(maps.Keys(before)), slices.Sorted(maps.Keys(is)))
		if got := excess(); reported != (wantReport != "") || reported && wantReport != got {
			t.Errorf("%s: reported %q: %t, want %q", name, got, reported, wantReport)
		}
		if got := room(); got != wantRoom {
			t.Errorf("%s: room is %t", name, got)
		}
	}
	version := 100
	put := func(name string, endpoints int) func() error {
		return func() error {
			slice := sized(name, endpoints)
			version++
			slice.ResourceVersion = strconv.Itoa(version)
			return store.Update(slice)
		}
	}
	remove := func(name string) func() error { return func() error { return store.Delete(sized(name, 0)) } }
	list := func(server *pages) func() error {
		return func() error {
			result, err := listSelection(t.Context(), server, metav1.ListOptions{Limit: pageSize}, store, confirmed)
			if err != nil {
				return err
			}
			objects := make([]any, len(result.Items))
			for i := range result.Items {
				objects[i] = result.Items[i]
			}
			return store.Replace(objects, result.ResourceVersion)
		}
	}
	large := func(name string) *discoveryv1.EndpointSlice {
		one := sized(name, 2)
		one.Annotations = map[string]string{export.AnnotationSnapshotPrefix + "v1": strings.Repeat("x", 4<<10)}
		return one
	}

	step("list", list(&pages{slices: []*discoveryv1.EndpointSlice{sized("a", 2), sized("b", 3)}, most: 100}), "a b",
		"a/a=2 b/b=3", "", false)
	step("a third service", put("c", 1), "c", "a/a=2 b/b=3 c/c=1", "", false)
	step("a fourth", put("d", 1), "", "a/a=2 b/b=3 c/c=1", "services demo/d", true)
	step("and a fifth is not told again", put("e", 1), "", "a/a=2 b/b=3 c/c=1", "", true)
	step("growth", put("a", 6), "a", "a/a=6 b/b=3 c/c=1", "", false)
	step("too much of it", put("a", 7), "", "a/a=6 b/b=3 c/c=1", "endpoints demo/a, services demo/e", true)
	step("another slice", put("a/more", 1), "", "a/a=6 b/b=3 c/c=1", "", true)
	step("a change without growth", put("b", 3), "b", "a/a=6 b/b=3 c/c=1", "", false)
	step("less", put("b", 2), "b", "a/a=6 b/b=2 c/c=1", "", true)
	step("one service less", remove("c"), "c", "a/a=6 b/b=2", "", true)

	// What is imported comes first, whatever comes before it by name.
	imported[types.NamespacedName{Namespace: "demo", Name: "y"}] = limits.WeightOf(sized("y", 2))
	imported[types.NamespacedName{Namespace: "demo", Name: "z"}] = limits.WeightOf(sized("z", 2))
	server := &pages{most: 2, slices: []*discoveryv1.EndpointSlice{
		sized("a", 2), sized("b", 2), sized("c", 2), sized("y", 2), sized("z/1", 2), sized("z/2", 2), sized("", 1),
	}}
	step("a longer list", list(server), "a b y z", "a/a=2 y/y=2 z/1=2 z/2=2", "services demo/b", false)
	if got := fmt.Sprint(server.asked); got != "[100 50 25 12 6 3 1 1 1 1 1 1 1]" {
		t.Errorf("asked for pages of %s", got)
	}
	// What is imported and left out is exported all the same.
	imported[types.NamespacedName{Namespace: "demo", Name: "a"}] = limits.WeightOf(sized("a", 2))
	imported[types.NamespacedName{Namespace: "demo", Name: "b"}] = limits.WeightOf(sized("b", 2))
	server.most = 100
	step("more is imported than may", list(server), "b", "a/a=2 b/b=2 y/y=2 z/1=2 z/2=2", "", false)
	server.slices[4] = sized("z/1", 3)
	step("more of it than may", list(server), "z", "a/a=2 b/b=2 y/y=2", "endpoints demo/z, services demo/c", false)
	if got := strings.Join(listed, " "); got != "a b y z" {
		t.Errorf("listed %s", got)
	}
	if z := (types.NamespacedName{Namespace: "demo", Name: "z"}); !store.account.IsWithheld(z) ||
		store.account.IsWithheld(types.NamespacedName{Namespace: "demo", Name: "b"}) {
		t.Error("z alone is withheld")
	}
	// What was left out whole does not come in by half.
	step("one goes", remove("y"), "y", "a/a=2 b/b=2", "", true)
	step("a slice of what is withheld", put("z/1", 2), "", "a/a=2 b/b=2", "", true)
	step("which goes", remove("z/1"), "", "a/a=2 b/b=2", "", true)
	step("all of them fit", list(&pages{slices: []*discoveryv1.EndpointSlice{sized("a", 2)}, most: 100}), "b z",
		"a/a=2", "", false)
	step("there is room for new ones", put("c", 1), "c", "a/a=2 c/c=1", "", false)
	step("and they go", remove("c"), "c", "a/a=2", "", false)

	step("a slice that is too large", func() error { return store.Update(large("a")) }, "", "a/a=2",
		"slice-bytes demo/a", true)
	step("and another", func() error { return store.Update(large("b")) }, "", "a/a=2", "", true)
	step("which is not taken by half", put("b/more", 1), "", "a/a=2", "", true)
	step("a smaller one", put("a", 1), "a", "a/a=1", "", false)
	step("the other in a list", list(&pages{slices: []*discoveryv1.EndpointSlice{
		sized("a", 1), sized("b/a", 1), large("b"), sized("b/z", 1),
	}, most: 100}), "a b", "a/a=1", "", false)
	step("both", list(&pages{slices: []*discoveryv1.EndpointSlice{large("a"), large("b")}, most: 100}), "a b", "", "", false)
	step("one loses its service", func() error { return store.Update(sized("/a", 1)) }, "", "", "", true)
	step("none is left", list(&pages{most: 100}), "a b", "", "", false)
	if use := store.account.Use(); use[0].Used+use[1].Used != 0 {
		t.Errorf("counts %v", use)
	}
}

// TestListTakesTheRoom: a complete list has what there was room for before it, and is not followed by another.
func TestListTakesTheRoom(t *testing.T) {
	store := newSliceStore(func(types.NamespacedName) {}, func() {})
	store.account = limits.NewAccount("west", limits.Limits{Services: 2, Endpoints: 10, SliceBytes: 4 << 10}, nil, nil)
	put := func(name string) {
		if err := store.Update(sized(name, 1)); err != nil {
			t.Fatal(err)
		}
	}
	put("a")
	put("b")
	put("c") // is left out
	if err := store.Delete(sized("b", 1)); err != nil {
		t.Fatal(err)
	}
	if err := replace(store, "9", sized("a", 1), sized("c", 1)); err != nil {
		t.Fatal(err)
	}
	select {
	case <-store.account.Relist():
		t.Error("there is still said to be room for what the list has")
	default:
	}
	put("d") // is left out again
	if err := store.Delete(sized("c", 1)); err != nil {
		t.Fatal(err)
	}
	select {
	case <-store.account.Relist():
	default:
		t.Error("room that is made after the list is not told")
	}
}

// TestRelistsBecomeRare: a member that stays at its limits is listed less and less often, until all of it fits.
func TestRelistsBecomeRare(t *testing.T) {
	store := newSliceStore(func(types.NamespacedName) {}, func() {})
	store.account = limits.NewAccount("west", limits.Limits{Services: 1, Endpoints: 10, SliceBytes: 4 << 10}, nil, nil)
	list := func(names ...string) time.Duration {
		server := &pages{most: 100}
		for _, name := range names {
			server.slices = append(server.slices, sized(name, 1))
		}
		if _, err := listSelection(t.Context(), server, metav1.ListOptions{Limit: pageSize}, store, confirmed); err != nil {
			t.Fatal(err)
		}
		return store.account.RelistDelay()
	}
	var delays []time.Duration
	for range 20 {
		delays = append(delays, list("a", "b"))
	}
	if delays[0] != 5*time.Second || delays[1] != 10*time.Second || delays[2] != 20*time.Second ||
		delays[19] != 10*time.Minute {
		t.Errorf("delays of %v", delays)
	}
	if got := list("a"); got != 5*time.Second {
		t.Errorf("a delay of %v after all fit", got)
	}
}

// TestPages: a member behind a slow link is listed all the same, and a few large slices do not make all pages small.
func TestPages(t *testing.T) {
	server := &pages{most: 25, err: errLate}
	for i := range 1000 {
		server.slices = append(server.slices, sized(fmt.Sprintf("s%04d", i), 1))
	}
	list, err := listSelection(t.Context(), growing{server}, metav1.ListOptions{Limit: pageSize},
		newSliceStore(func(types.NamespacedName) {}, func() {}), confirmed)
	if err != nil || len(list.Items) != len(server.slices) {
		t.Errorf("got %v, %v", list, err)
	}
	if got := fmt.Sprint(server.asked); got != "[100 50 25 25 25 25 25 25 25 25 50 50 50 50 50 50 50 50 100 100 100 100]" {
		t.Errorf("asked for pages of %s", got)
	}
}

// growing is pages of which the first are slow.
type growing struct{ *pages }

func (g growing) List(ctx context.Context, options metav1.ListOptions) (*discoveryv1.EndpointSliceList, error) {
	if options.Continue != "" {
		g.most = pageSize
	}
	return g.pages.List(ctx, options)
}
