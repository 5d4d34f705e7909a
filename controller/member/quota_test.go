// SPDX-License-Identifier: Apache-2.0

package member

import (
	"cmp"
	"fmt"
	"io"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/limits"
)

// sized reads a slice: "service=endpoints" or "service/name=endpoints", with "!" after one that is too large.
func sized(text string) *discoveryv1.EndpointSlice {
	name, count, _ := strings.Cut(strings.TrimSuffix(text, "!"), "=")
	service, _, found := strings.Cut(name, "/")
	if found {
		name = name[len(service)+1:]
	}
	one := slice(name, service, count)
	endpoints, _ := strconv.Atoi(count)
	one.Endpoints = make([]discoveryv1.Endpoint, endpoints)
	if strings.HasSuffix(text, "!") {
		one.Annotations = map[string]string{export.AnnotationSnapshotPrefix + "v1": strings.Repeat("x", 4<<10)}
	}
	return one
}

// pages is a server that answers lists in pages, and too large a page with an error.
type pages struct {
	slices []*discoveryv1.EndpointSlice
	// made makes count slices in place of these.
	made  func(i int) *discoveryv1.EndpointSlice
	count int
	most  int64
	// err is that of a page with more slices than most; nil means that it is too large.
	err   error
	grows bool // later pages may have any size
	asked []int64
}

// serve returns the server, which has no heartbeat.
func (p *pages) serve(t *testing.T) roundTrip {
	return func(request *http.Request) (io.ReadCloser, error) {
		if path.Base(request.URL.Path) == "leases" {
			return sent(t, &coordinationv1.LeaseList{}), nil
		}
		query := request.URL.Query()
		limit, _ := strconv.ParseInt(query.Get("limit"), 10, 64)
		from, _ := strconv.Atoi(query.Get("continue"))
		p.asked = append(p.asked, limit)
		if limit > p.most && (from == 0 || !p.grows) {
			return nil, cmp.Or(p.err, errTooLarge)
		}
		list := &discoveryv1.EndpointSliceList{ListMeta: metav1.ListMeta{ResourceVersion: "7"}}
		count, made := len(p.slices), func(i int) *discoveryv1.EndpointSlice { return p.slices[i] }
		if p.made != nil {
			count, made = p.count, p.made
		}
		to := min(count, from+int(limit))
		for i := from; i < to; i++ {
			list.Items = append(list.Items, *made(i))
		}
		if to < count {
			list.Continue = fmt.Sprint(to)
		}
		return sent(t, list), nil
	}
}

// TestLimits plays lists and watches of a member that exceeds its limits. Which slices a list takes is tested in
// package limits.
func TestLimits(t *testing.T) {
	var told, listed []string
	memory := limits.NewPool(1 << 30)
	around := &surroundings{
		serviceChanged: func(service types.NamespacedName) { told = append(told, service.Name) },
		imported:       map[types.NamespacedName]limits.Weight{},
		listed: func(_ string, services []types.NamespacedName) {
			listed = nil
			for _, service := range services {
				listed = append(listed, service.Name)
			}
		},
	}
	store := around.west()
	store.account = limits.NewAccount("west", limits.Limits{Services: 3, Endpoints: 10, SliceBytes: 4 << 10}, memory, nil)
	for i, step := range []struct{ do, told, held string }{ // told: "+" if another list is asked for
		{"list a=2 b=3", "a b", "a/a=2 b/b=3"},
		{"put c=1", "c", "a/a=2 b/b=3 c/c=1"},
		{"put d=1", "+", "a/a=2 b/b=3 c/c=1"},  // a service too many
		{"delete d", "+", "a/a=2 b/b=3 c/c=1"}, // it may have been left out
		{"put a=6", "a", "a/a=6 b/b=3 c/c=1"},
		{"put a=7", "+", "a/a=6 b/b=3 c/c=1"}, // an endpoint too many
		{"put a/more=1", "+", "a/a=6 b/b=3 c/c=1"},
		{"put b=3", "b", "a/a=6 b/b=3 c/c=1"}, // it does not grow
		{"put b=2", "+ b", "a/a=6 b/b=2 c/c=1"},
		{"delete c", "+ c", "a/a=6 b/b=2"},
		{"list a=6 b=2 c/1=1 c/2=2", "a b", "a/a=6 b/b=2"},
		{"put c/1=1", "+", "a/a=6 b/b=2"},     // it would fit, without the rest of its service
		{"import y=2 z=2", "", "a/a=6 b/b=2"}, // first, whatever comes before it by name
		{"list a=2 b=2 c=2 y=2 z/1=2 z/2=2 =1", "a b y z", "a/a=2 y/y=2 z/1=2 z/2=2"},
		{"import a=2 b=2", "", "a/a=2 y/y=2 z/1=2 z/2=2"}, // more services than may, which are exported all the same
		{"list a=2 b=2 c=2 y=2 z/1=2 z/2=2", "b", "a/a=2 b/b=2 y/y=2 z/1=2 z/2=2"},
		{"list a=2 b=2 c=2 y=2 z/1=3 z/2=2", "z", "a/a=2 b/b=2 y/y=2"},
		{"listed a b y z", "", "a/a=2 b/b=2 y/y=2"},
		{"delete y", "+ y", "a/a=2 b/b=2"},
		{"put z/1=2", "+", "a/a=2 b/b=2"}, // what was left out whole does not come in by half
		{"delete z/1", "+", "a/a=2 b/b=2"},
		{"list a=2", "b z", "a/a=2"},
		{"put c=1", "c", "a/a=2 c/c=1"},
		{"delete c", "c", "a/a=2"},
		{"put a=2!", "+", "a/a=2"},
		{"put b=2!", "+", "a/a=2"},
		{"put b/more=1", "+", "a/a=2"},
		{"put a=1", "a", "a/a=1"},
		{"list a=1 b/a=1 b=2! b/z=1", "a b", "a/a=1"},
		{"list a=2! b=2!", "a b", ""},
		{"put /a=1", "+", ""}, // it loses its service
		{"list", "a b", ""},
	} {
		told = nil
		verb, rest, _ := strings.Cut(step.do, " ")
		var all []*discoveryv1.EndpointSlice
		for word := range strings.FieldsSeq(rest) {
			all = append(all, sized(word))
		}
		switch verb {
		case "put":
			all[0].ResourceVersion = fmt.Sprint(100 + i)
			store.put(all[0])
		case "delete":
			store.remove(all[0])
		case "import":
			for _, each := range all {
				around.imported[export.ServiceOf(each)] = limits.WeightOf(each)
			}
		case "listed":
			if slices.Sort(listed); strings.Join(listed, " ") != rest {
				t.Errorf("listed %s", listed)
			}
			_, withheld := store.Read(export.ServiceOf(sized("z=1")))
			if _, complete := store.Read(export.ServiceOf(sized("b=1"))); withheld || !complete {
				t.Error("z alone is withheld")
			}
		case "list":
			replace(t, store, &pages{slices: all, most: pageSize})
		}
		select {
		case <-store.account.Relist():
			told = append(told, "+")
		default:
		}
		var held []string
		for _, service := range store.Services() {
			for _, each := range store.Slices(service) {
				held = append(held, fmt.Sprintf("%s/%s=%d", service.Name, each.Name, len(each.Endpoints)))
			}
		}
		slices.Sort(told)
		slices.Sort(held)
		if got := strings.Join(told, " "); got != step.told {
			t.Errorf("%d, %s: told %q, want %q", i, step.do, got, step.told)
		}
		if got := strings.Join(held, " "); got != step.held {
			t.Errorf("%d, %s: holds %q, want %q", i, step.do, got, step.held)
		}
	}
	if used, _ := memory.Use(); used != 0 {
		t.Errorf("counts %d bytes", used)
	}
}

// TestPages: a member behind a slow link is listed all the same, and so is one with large slices. A few of them do not make
// all pages small.
func TestPages(t *testing.T) {
	for name, test := range map[string]struct {
		count  int
		server pages
		want   string
	}{
		"slow":  {1000, pages{most: 25, err: errLate, grows: true}, "[100 50 25 25 25 25 25 25 25 25 50 50 50 50 50 50 50 50 100 100 100 100]"},
		"large": {7, pages{most: 2}, "[100 50 25 12 6 3 1 1 1 1 1 1 1]"},
	} {
		for i := range test.count {
			test.server.slices = append(test.server.slices, sized(fmt.Sprintf("s%04d=1", i)))
		}
		store := (&surroundings{}).west()
		if replace(t, store, &test.server); store.Published() != test.count {
			t.Errorf("%s: got %d slices", name, store.Published())
		}
		if got := fmt.Sprint(test.server.asked); got != test.want {
			t.Errorf("%s: asked for pages of %s", name, got)
		}
	}
}
