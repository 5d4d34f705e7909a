// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
)

// lanes order the services that are due: the clusters whose changes made them due take turns, so that a cluster that
// changes much delays the others by one reconcile each. Services of one cluster are in the order in which they became
// due. It is used under the lock of a work queue.
type lanes struct {
	// clusterOf returns the cluster whose change made a service due.
	clusterOf func(types.NamespacedName) string
	waiting   map[string][]types.NamespacedName
	// turns are the clusters with waiting services, the next first.
	turns []string
	count int
}

var _ workqueue.Queue[types.NamespacedName] = (*lanes)(nil)

func newLanes(clusterOf func(types.NamespacedName) string) *lanes {
	return &lanes{clusterOf: clusterOf, waiting: map[string][]types.NamespacedName{}}
}

// Touch does nothing: the service keeps its place.
func (l *lanes) Touch(types.NamespacedName) {}

// Push adds a service to the lane of its cluster.
func (l *lanes) Push(service types.NamespacedName) {
	cluster := l.clusterOf(service)
	if len(l.waiting[cluster]) == 0 {
		l.turns = append(l.turns, cluster)
	}
	l.waiting[cluster] = append(l.waiting[cluster], service)
	l.count++
}

// Len returns the number of services.
func (l *lanes) Len() int { return l.count }

// Pop removes the first service of the cluster whose turn it is. There must be one.
func (l *lanes) Pop() types.NamespacedName {
	cluster := l.turns[0]
	l.turns = l.turns[1:]
	service := l.waiting[cluster][0]
	l.count--
	if l.waiting[cluster] = l.waiting[cluster][1:]; len(l.waiting[cluster]) > 0 {
		l.turns = append(l.turns, cluster)
	} else {
		delete(l.waiting, cluster)
	}
	return service
}
