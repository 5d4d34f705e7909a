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

// refusals remember what is not accepted of members, so that it is reported once. It is safe for concurrent use for
// different services.
type refusals struct{ of sync.Map } // rules by cluster, by service

// set replaces the rules that refuse a service, by cluster, and returns the clusters whose refusal is new, sorted.
func (r *refusals) set(service types.NamespacedName, rules map[string]string) (added []string) {
	last, _ := r.of.LoadAndDelete(service)
	before, _ := last.(map[string]string)
	if len(rules) > 0 {
		r.of.Store(service, rules)
	}
	return slices.DeleteFunc(slices.Sorted(maps.Keys(rules)), func(cluster string) bool {
		return before[cluster] == rules[cluster]
	})
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
