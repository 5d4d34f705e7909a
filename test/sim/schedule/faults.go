// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/test/sim"
	"github.com/clusterset-dns/clusterset-dns/test/sim/apiserver"
	"github.com/clusterset-dns/clusterset-dns/test/sim/network"
	"github.com/clusterset-dns/clusterset-dns/test/sim/oracle"
)

// A fault is a kind of fault.
type fault struct {
	kind string
	// weight is how often New draws it relative to other faults; 0 means never.
	weight int
	// pair reports whether the fault is between the cluster, as the reader, and another cluster.
	pair bool
	// silences reports whether no heartbeat arrives over the ways during the fault.
	silences bool
	// targets are the names of which only one fault may affect each at a time.
	targets func(*happening) []string
	// ways are the affected ways: because of what is at their end, no answer is required, and an answer may be out of
	// date. nil means that the fault must not matter.
	ways func(*happening) []way
	// begin begins the fault. It returns a function that heals it, or nil if there is nothing to heal.
	begin func(*happening) (heal func())
}

// A happening is a fault in a run.
type happening struct {
	Event
	run      *run
	c, other *cluster
	random   *rand.Rand
	told     string // details for the log
}

func theWay(h *happening) []string { return []string{"way " + h.c.Name + " " + h.other.Name} }

func theCluster(what string) func(*happening) []string {
	return func(h *happening) []string { return []string{what + " " + h.c.Name} }
}

// nothing returns no targets: other faults do not prevent this fault.
func nothing(*happening) []string { return nil }

// allWays returns the ways between the cluster and other clusters, as targets.
func allWays(h *happening) (targets []string) {
	for _, each := range betweenAll(h) {
		targets = append(targets, "way "+each.to+" "+each.from)
	}
	return targets
}

func fromOther(h *happening) []way { return []way{{h.other.Name, h.c.Name}} }
func all(h *happening) []way       { return h.c.ways() }
func into(h *happening) []way      { return h.c.into() }

// betweenAll returns the ways between the cluster and other clusters.
func betweenAll(h *happening) []way {
	return slices.DeleteFunc(h.c.ways(), func(w way) bool { return w.from == w.to })
}

// onWay returns a fault of the way to the other cluster, which Restore heals.
func onWay(kind string, weight int, silences bool, change func(n *network.Network, from, to string, random *rand.Rand)) fault {
	return fault{
		kind: kind, weight: weight, pair: true, silences: silences, targets: theWay, ways: fromOther,
		begin: func(h *happening) func() {
			change(h.run.set.Network, h.c.Name, h.other.Name, h.random)
			return func() { h.run.set.Network.Restore(h.c.Name, h.other.Name) }
		},
	}
}

// within returns a fault of a part of a cluster.
func within(part, kind string, weight int, silences bool, begin func(*happening) func()) fault {
	return fault{kind: kind, weight: weight, silences: silences, targets: theCluster(part), ways: all, begin: begin}
}

// faults are all faults. To add one, add a row.
var faults = []fault{
	onWay("cut both ways to", 12, true,
		func(n *network.Network, from, to string, _ *rand.Rand) { n.Cut(from, to, network.Both) }),
	onWay("cut what comes from", 6, true,
		func(n *network.Network, from, to string, _ *rand.Rand) { n.Cut(from, to, network.FromServer) }),
	onWay("cut what goes to", 4, false,
		func(n *network.Network, from, to string, _ *rand.Rand) { n.Cut(from, to, network.ToServer) }),
	onWay("refuse connections to", 6, true,
		func(n *network.Network, from, to string, _ *rand.Rand) { n.Refuse(from, to) }),
	onWay("delay what goes to and comes from", 5, false, func(n *network.Network, from, to string, random *rand.Rand) {
		n.Delay(from, to, time.Duration(random.Int64N(int64(3*time.Second))))
	}),
	{
		kind: "half-open connections to", weight: 5, pair: true, targets: theWay, ways: fromOther,
		begin: func(h *happening) func() {
			h.run.set.Network.Forget(h.c.Name, h.other.Name, network.Direction(1+h.random.IntN(3)))
			// If data still arrives, it may take minutes to detect that nothing is sent.
			return func() { h.run.set.Network.Reset(h.c.Name, h.other.Name) }
		},
	},
	{
		kind: "reset connections to", weight: 8, pair: true, targets: theWay, ways: fromOther,
		begin: func(h *happening) func() {
			h.run.set.Network.Reset(h.c.Name, h.other.Name)
			return nil
		},
	},
	{
		kind: "cut off from all", weight: 5, silences: true, targets: allWays, ways: betweenAll,
		begin: func(h *happening) func() {
			ways := betweenAll(h)
			for _, each := range ways {
				h.run.set.Network.Cut(each.to, each.from, network.Both)
			}
			return func() {
				for _, each := range ways {
					h.run.set.Network.Restore(each.to, each.from)
				}
			}
		},
	},
	within("controller", "the controller is down", 12, true, func(h *happening) func() {
		h.c.Stop()
		return func() { h.c.Start() }
	}),
	within("controller", "the controller is killed", 6, true, func(h *happening) func() {
		h.c.Kill()
		return func() { h.c.Start() }
	}),
	within("controller", "the controller is killed at a write", 6, false, func(h *happening) func() {
		h.c.Controller.KillAt(1 + h.random.IntN(4))
		return func() {
			h.c.Kill()
			h.c.Start()
		}
	}),
	within("controller", "the controller stands still", 4, false, func(h *happening) func() {
		h.c.Controller.Freeze()
		return h.c.Controller.Thaw
	}),
	{kind: "DNS is down", weight: 5, targets: theCluster("DNS"), ways: into, begin: func(h *happening) func() {
		h.c.StopDNS()
		h.c.down = true
		return func() {
			h.c.judge().Starts()
			h.c.StartDNS()
			h.c.down = false
		}
	}},
	within("API", "the API server refuses all requests", 4, true, refuse(func(apiserver.Request) bool { return true })),
	within("API", "the API server refuses writes", 4, true, refuse(writes)),
	within("API", "the API server refuses lists and watches", 4, false,
		refuse(func(r apiserver.Request) bool { return r.Verb == "list" || r.Verb == "watch" })),
	within("API", "the API server refuses some writes of objects", 4, false, func(h *happening) func() {
		random := rand.New(rand.NewPCG(h.Random, 4))
		return refuse(func(r apiserver.Request) bool {
			return writes(r) && r.Resource.Resource != "leases" && random.IntN(3) > 0
		})(h)
	}),
	{
		kind: "an empty list of EndpointSlices instead of those of", weight: 8, pair: true, targets: theWay,
		ways: fromOther, begin: func(h *happening) func() {
			h.run.drain()
			h.other.API.Compact() // to force a list
			h.other.API.SetFault(h.c.Name, apiserver.WithoutSlices)
			return func() {
				h.run.drain()
				h.other.API.Compact() // the next API server does not know the version of the watch
				h.other.API.SetFault(h.c.Name, nil)
			}
		},
	},
	within("API", "the API server is killed", 5, true, func(h *happening) func() {
		h.c.StopAPI()
		return h.c.StartAPI
	}),
	within("API", "the API server is frozen", 8, true, func(h *happening) func() {
		h.c.FreezeAPI()
		return h.c.StartAPI
	}),
	within("API", "the API server restarts", 8, false, func(h *happening) func() {
		h.c.API.Restart()
		return nil
	}),
	{kind: compaction, weight: 6, targets: nothing, begin: func(h *happening) func() {
		h.run.drain()
		h.c.API.Compact()
		return nil
	}},
	{
		kind: "restore the API server from a backup, made at", weight: 16, targets: theCluster("API"),
		begin: func(h *happening) func() {
			if h.c.away || len(h.c.left) > 0 || !h.c.judge().ClearSince(h.c.Name, time.Now().Add(-bound)) {
				h.told = "nothing: it is not at rest"
				return nil
			}
			sim.Wait(2 * time.Second) // so that the last change is published
			backup := h.c.backup()
			return func() { h.c.restore(backup, h.random.IntN(2) == 0) }
		},
	},
	{
		kind: "leave", weight: 4, pair: true,
		targets: func(h *happening) []string { return []string{"member " + h.c.Name + " " + h.other.Name} },
		ways:    fromOther, begin: func(h *happening) func() {
			h.c.judge().Forget()
			h.c.leave(h.other.Name)
			return func() { h.c.join(h.other.Name) }
		},
	},
	within("API", "somebody deletes an object of the controller", 8, false, deleteDerived),
	within("API", "the namespace is deleted", 2, false, deleteNamespace),
}

func writes(r apiserver.Request) bool {
	return !slices.Contains([]string{"get", "list", "watch"}, r.Verb)
}

// refuse returns a fault: the API server refuses some requests of controllers and DNS.
func refuse(which func(apiserver.Request) bool) func(*happening) func() {
	return func(h *happening) func() {
		failure := []*apierrors.StatusError{
			apierrors.NewInternalError(errors.New("simulated")), apierrors.NewServiceUnavailable("simulated"),
			apierrors.NewTooManyRequests("simulated", 1), apierrors.NewTimeoutError("simulated", 1),
			apierrors.NewForbidden(corev1.Resource("simulated"), "", errors.New("simulated")),
		}[h.random.IntN(5)]
		h.told = string(failure.ErrStatus.Reason)
		h.c.API.SetRefuse(func(r apiserver.Request) *apierrors.StatusError {
			if r.Host == apiserver.Administrator || !which(r) {
				return nil
			}
			return failure
		})
		return func() { h.c.API.SetRefuse(nil) }
	}
}

const managedBy = "app.kubernetes.io/managed-by"

// deleteDerived deletes an object that the controller wrote and must restore, except copies from an unreachable member. It
// spares published slices while another cluster may not see that they are restored at once.
func deleteDerived(h *happening) func() {
	var found []metav1.Object
	for _, each := range apiserver.List[*discoveryv1.EndpointSlice](h.c.API, discoveryv1.Resource("endpointslices")) {
		if from := each.Labels[v1beta1.LabelSourceCluster]; from != "" && from != h.c.Name {
			found = append(found, each)
		}
	}
	for _, each := range apiserver.List[*corev1.Service](h.c.API, corev1.Resource("services")) {
		if each.Labels[managedBy] != "" && each.Labels[export.LabelExposed] == "" { // other networks reach pods by it
			found = append(found, each)
		}
	}
	for _, each := range apiserver.List[*unstructured.Unstructured](h.c.API, v1beta1.Resource("serviceimports")) {
		found = append(found, each)
	}
	if len(found) == 0 {
		return nil
	}
	told := func(object metav1.Object) string {
		return object.(runtime.Object).GetObjectKind().GroupVersionKind().Kind + " " + object.GetName()
	}
	slices.SortFunc(found, func(a, b metav1.Object) int { return strings.Compare(told(a), told(b)) })
	one := found[h.random.IntN(len(found))]
	h.told = told(one)
	h.c.judge().Forget()
	h.c.carryOut(oracle.Write{Object: one.(runtime.Object), Delete: true})
	sim.Wait(200 * time.Millisecond) // the garbage collector deletes dependents
	h.c.judge().Forget()
	return nil
}

// deleteNamespace deletes the namespace, and then recreates it and the Services.
func deleteNamespace(h *happening) func() {
	before := h.c.services()
	for _, service := range before {
		h.c.load.Services[service.Name] = oracle.Service{Name: service.Name}
	}
	h.c.away = true
	namespace := &corev1.Namespace{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}, ObjectMeta: metav1.ObjectMeta{Name: sim.Namespace},
	}
	h.c.carryOut(oracle.Write{Object: namespace, Delete: true})
	sim.Wait(2 * time.Second)
	h.c.change(h.c.services()...)
	return func() {
		h.c.carryOut(oracle.Write{Object: namespace})
		h.c.away = false
		for _, service := range before {
			for i := range service.Endpoints {
				service.Endpoints = slices.Clone(service.Endpoints)
				service.Endpoints[i] = h.c.load.Fresh()
			}
			h.c.write(oracle.Service{Name: service.Name}, service)
		}
	}
}
