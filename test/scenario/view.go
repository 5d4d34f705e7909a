// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/test/clusterset"
)

// A View is the expected result of See for each service.
type View map[string]string

// With returns the view with changes: pairs of a service and its text.
func (v View) With(changes ...string) View {
	changed := maps.Clone(v)
	for i := 0; i < len(changes); i += 2 {
		changed[changes[i]] = changes[i+1]
	}
	return changed
}

// gone is the text of a service without an import.
const gone = "none -> NXDOMAIN"

// See returns what clients of a cluster see of a service, as text:
//
//	east/10.64.0.1 west/10.65.0.1~ -> VIP (ServiceRefused) [Valid=NoService], but …
//
// First come the endpoints of the imported slices, sorted; ~ means not ready, but serving and terminating, and - means
// not used by any client: not ready, or outside of the allowed clusters. "none" means that there is no ServiceImport.
// Next is the DNS answer for A records; VIP means the IP of the import. Next are the reason of the import's condition
// Ready unless it is true, and conditions of the ServiceExport, if there is one, that are not as they should be.
// Finally, inconsistencies among the objects: IPs, derived Service, clusters.
func (c *Cluster) See(service string) string {
	s := c.set
	var wrong []string
	texts, sources, empty := c.endpoints(service)
	imported, err := c.importOf(service)
	found := err == nil
	s.must(ignoreNotFound(err))
	derived, err := c.derivedOf(service)
	behind := err == nil
	s.must(ignoreNotFound(err))
	if !found {
		texts = append(texts, "none")
	}
	answer, notReady := c.DNS.Text(service, s.namespace), ""
	switch {
	case !found && behind:
		wrong = append(wrong, "there is a derived Service without import")
	case !found:
	case imported.Spec.Type == v1beta1.Headless:
		if behind || len(imported.Spec.IPs) > 0 || imported.Annotations[export.AnnotationDerivedService] != "" {
			wrong = append(wrong, "the import is headless and has an IP")
		}
	case !behind || !slices.Equal(derived.Spec.ClusterIPs, imported.Spec.IPs) ||
		imported.Annotations[export.AnnotationDerivedService] != derived.Name:
		wrong = append(wrong,
			fmt.Sprintf("the import has the IPs %v, the derived Service %v", imported.Spec.IPs,
				derived.Spec.ClusterIPs))
	case slices.Contains(imported.Spec.IPs, answer):
		answer = "VIP"
	}
	if found {
		if ready := meta.FindStatusCondition(imported.Status.Conditions, "Ready"); ready == nil {
			notReady = " (without condition)"
		} else if ready.Status != metav1.ConditionTrue {
			notReady = " (" + ready.Reason + ")"
		}
		var clusters []string
		for _, each := range imported.Status.Clusters {
			clusters = append(clusters, each.Cluster)
		}
		clusters = slices.DeleteFunc(clusters, func(name string) bool { return slices.Contains(empty, name) })
		if !slices.Equal(clusters, sources) {
			wrong = append(wrong, fmt.Sprintf("the import is of %v and has slices of %v", clusters, sources))
		}
	}
	text := strings.Join(texts, " ") + " -> " + answer + notReady
	if conditions := c.conditions(service); conditions != "" &&
		conditions != "Conflict=NoConflicts Ready=Ready Valid=Valid" {
		text += " [" + conditions + "]"
	}
	if len(wrong) > 0 && notReady == "" {
		text += ", but " + strings.Join(wrong, "; ")
	}
	return strings.TrimPrefix(text, " ")
}

// endpoints returns the endpoints of a service's imported slices, the clusters with endpoints, and the clusters whose
// slices have none.
func (c *Cluster) endpoints(service string) (texts, sources, empty []string) {
	imported := c.Slices(service)
	for _, slice := range imported {
		source := slice.Labels[export.LabelSourceCluster]
		if len(slice.Endpoints) == 0 {
			empty = append(empty, source)
		} else {
			sources = append(sources, source)
		}
	}
	slices.Sort(sources)
	empty = slices.DeleteFunc(empty, func(cluster string) bool { return slices.Contains(sources, cluster) })
	return clusterset.Endpoints(imported), slices.Compact(sources), empty
}

// Slices returns the slices of a service that the controller wrote.
func (c *Cluster) Slices(service string) []discoveryv1.EndpointSlice {
	list, err := c.slices.List(c.set.Context(), metav1.ListOptions{
		LabelSelector: export.LabelService + "=" + service + "," + export.LabelSliceManagedBy + "=" + export.Manager,
	})
	c.set.must(err)
	return list.Items
}

// conditions returns the conditions of a ServiceExport, as Type=Reason; empty if there is no export.
func (c *Cluster) conditions(service string) string {
	exported, err := c.exportOf(service)
	if err != nil {
		c.set.must(ignoreNotFound(err))
		return ""
	}
	texts := []string{}
	for _, each := range exported.Status.Conditions {
		if each.ObservedGeneration != exported.Generation {
			return "of an older generation"
		}
		texts = append(texts, each.Type+"="+each.Reason)
	}
	if len(texts) == 0 {
		return "without conditions"
	}
	slices.Sort(texts)
	return strings.Join(texts, " ")
}

// differs returns an error if the cluster does not match the view.
func (c *Cluster) differs(want View) error {
	var wrong []error
	for _, service := range slices.Sorted(maps.Keys(want)) {
		if got := c.See(service); got != want[service] {
			wrong = append(wrong, fmt.Errorf("%s in %s:\ngot  %s\nwant %s", service, c.Name, got, want[service]))
		}
	}
	return errors.Join(wrong...)
}

// or returns the clusters, or all clusters if none is given.
func (s *Set) or(clusters []*Cluster) []*Cluster {
	if len(clusters) == 0 {
		return s.clusters
	}
	return clusters
}

// Expect waits until the clusters, all if none is given, match the view.
func (s *Set) Expect(want View, in ...*Cluster) {
	for _, c := range s.or(in) {
		s.Eventually("view of "+c.Name, func() error { return c.differs(want) })
	}
}

// Except is like Expect, but one cluster has a different view.
func (s *Set) Except(c *Cluster, but, want View) {
	s.Expect(but, c)
	for _, other := range s.clusters {
		if other != c {
			s.Expect(want, other)
		}
	}
}

// Holds asserts that the clusters, all if none is given, match the view for this time.
func (s *Set) Holds(d time.Duration, want View, in ...*Cluster) {
	for end := time.Now().Add(d / time.Duration(s.Rate())); time.Now().Before(end); {
		for _, c := range s.or(in) {
			s.must(c.differs(want))
		}
		s.Pass(3 * time.Second)
	}
}

// IPs waits until an import and its derived Service have the same IPs, these ones if any are given, and returns them.
func (c *Cluster) IPs(service string, want ...string) (ips []string) {
	c.set.Eventually("IPs of "+service+" in "+c.Name, func() error {
		imported, err := c.importOf(service)
		if err != nil {
			return err
		}
		derived, err := c.derivedOf(service)
		if err != nil {
			return err
		}
		ips = imported.Spec.IPs
		if len(ips) == 0 || !slices.Equal(ips, derived.Spec.ClusterIPs) || len(want) > 0 && !slices.Equal(ips, want) {
			return fmt.Errorf("the import has %v, the derived Service %v, want %v", ips, derived.Spec.ClusterIPs, want)
		}
		return nil
	})
	return ips
}

// derived returns the name of the derived Service.
func (c *Cluster) derived(service string) string {
	return export.DerivedServiceName(c.set.key(service))
}

// event returns the message of an Event on an object.
func (c *Cluster) event(object metav1.Object, reason string, words []string) (string, error) {
	events, err := c.Kube.CoreV1().Events("").List(c.set.Context(), metav1.ListOptions{})
	if err != nil {
		return "", err
	}
	last, others := "", ""
	for _, event := range events.Items {
		says := func(word string) bool { return strings.Contains(event.Message, word) }
		if event.InvolvedObject.UID == object.GetUID() && event.Reason == reason &&
			!slices.ContainsFunc(words, func(word string) bool { return !says(word) }) {
			last = max(last, event.Message)
		}
		others += "\n" + event.InvolvedObject.Name + " " + event.Reason + ": " + event.Message
	}
	if last == "" {
		return "", fmt.Errorf("there is none among%s", others)
	}
	return last, nil
}
