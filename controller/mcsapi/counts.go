// SPDX-License-Identifier: Apache-2.0

package mcsapi

import (
	"maps"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

// A Fact is what one object adds to the counts. The zero values of the fields that do not matter are left.
type Fact struct {
	// Kind is that of the object.
	Kind string
	// Unreadable is set if the object cannot be decoded.
	Unreadable bool
	// Managed is set for a ServiceImport that this controller created, with its type.
	Managed bool
	Type    v1beta1.ServiceImportType
	// Condition, Status and Reason are those of a condition. A condition with several reasons is a Fact for each.
	Condition, Status, Reason string
}

// counts are the numbers of objects by Fact. They are kept up to date with each object, so that nothing has to be
// walked to have them.
type counts struct {
	set export.Set // that of this controller

	mu sync.Mutex
	of map[Fact]int
}

// Counts returns how many ServiceExports and ServiceImports exist by what is true of them, in a new map. An object
// counts for each Fact; one with the kind alone counts all objects.
func (a *Access) Counts() map[Fact]int {
	a.counts.mu.Lock()
	defer a.counts.mu.Unlock()
	return maps.Clone(a.counts.of)
}

// factsOf returns what an object counts for. Of a ServiceImport that this controller did not create, the conditions do
// not count.
func (c *counts) factsOf(object any) []Fact {
	switch object := object.(type) {
	case *v1beta1.ServiceExport:
		kind := v1beta1.ServiceExportKindName
		return append(commonFacts(kind, object), conditionFacts(kind, object.Status.Conditions)...)
	case *v1beta1.ServiceImport:
		kind := v1beta1.ServiceImportKindName
		facts := commonFacts(kind, object)
		if c.set.Manages(object) {
			facts = append(facts, Fact{Kind: kind, Managed: true, Type: object.Spec.Type})
			facts = append(facts, conditionFacts(kind, object.Status.Conditions)...)
		}
		return facts
	}
	return nil
}

func commonFacts(kind string, object metav1.Object) []Fact {
	facts := []Fact{{Kind: kind}}
	if Unreadable(object) != "" {
		facts = append(facts, Fact{Kind: kind, Unreadable: true})
	}
	return facts
}

func conditionFacts(kind string, conditions []metav1.Condition) (facts []Fact) {
	for _, condition := range conditions {
		for reason := range strings.SplitSeq(condition.Reason, ",") {
			facts = append(facts, Fact{
				Kind: kind, Condition: condition.Type, Status: string(condition.Status), Reason: reason,
			})
		}
	}
	return facts
}

// change counts what replaced what; nil is nothing.
func (c *counts) change(before, after any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of == nil {
		c.of = map[Fact]int{}
	}
	for _, fact := range c.factsOf(after) {
		c.of[fact]++
	}
	for _, fact := range c.factsOf(before) {
		if c.of[fact]--; c.of[fact] == 0 {
			delete(c.of, fact)
		}
	}
}

// counted returns a handler that counts each object before the other handler sees it.
func (c *counts) counted(handler cache.ResourceEventHandler) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(object any, isInInitialList bool) {
			c.change(nil, object)
			handler.OnAdd(object, isInInitialList)
		},
		UpdateFunc: func(before, after any) {
			c.change(before, after)
			handler.OnUpdate(before, after)
		},
		DeleteFunc: func(object any) {
			c.change(object, nil)
			handler.OnDelete(object)
		},
	}
}
