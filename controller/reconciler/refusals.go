// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
)

// EventContributionRefused is the reason of an Event on the Secret of a member whose contribution is not accepted.
const EventContributionRefused = "ContributionRefused"

// refusals remember what is not accepted of members, so that it is reported once. It is safe for concurrent use.
type refusals struct {
	mu sync.Mutex
	// of are the rules that refuse a service, by cluster.
	of map[types.NamespacedName]map[string]string
}

// set replaces the refusals of a service, and returns the clusters whose refusal is new, sorted.
func (r *refusals) set(service types.NamespacedName, rules map[string]string) (added []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, cluster := range slices.Sorted(maps.Keys(rules)) {
		if r.of[service][cluster] != rules[cluster] {
			added = append(added, cluster)
		}
	}
	if r.of == nil {
		r.of = map[types.NamespacedName]map[string]string{}
	}
	if r.of[service] = rules; len(rules) == 0 {
		delete(r.of, service)
	}
	return added
}

// reportRefusals reports what is not accepted of members. It is no Warning: an administrator decided it.
func (r *Reconciler) reportRefusals(ctx context.Context, service types.NamespacedName, rules map[string]string) {
	for _, cluster := range r.refusals.set(service, rules) {
		klog.FromContext(ctx).Info("Refused the contribution of a member", "member", cluster, "service", service,
			"rule", rules[cluster])
		if m := r.Members.Get(cluster); m != nil && m.Object() != nil {
			r.Recorder.Event(m.Object(), corev1.EventTypeNormal, EventContributionRefused, fmt.Sprintf(
				"Service %s of cluster %s is not imported: %s", service, cluster, rules[cluster]))
		}
	}
}
