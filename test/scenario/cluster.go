// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"cmp"
	"fmt"
	"maps"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	discoveryv1client "k8s.io/client-go/kubernetes/typed/discovery/v1"
	mcs "sigs.k8s.io/mcs-api/pkg/client/clientset/versioned"
	mcsclient "sigs.k8s.io/mcs-api/pkg/client/clientset/versioned/typed/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller"
	"github.com/clusterset-dns/clusterset-dns/controller/memberstate"
	"github.com/clusterset-dns/clusterset-dns/test/answers"
)

// A Cluster is an API server with its controllers and its DNS. It reads and writes the objects of one namespace, and sees
// what its clients see. Its methods end the scenario if a request to the API server fails.
type Cluster struct {
	Name string
	// Kube, Dynamic and MCS have all rights.
	Kube    kubernetes.Interface
	Dynamic dynamic.Interface
	MCS     mcs.Interface
	// DNS is the DNS of the cluster, nil if none runs.
	DNS *answers.DNS
	// Options are the options of controllers that are started from now on.
	Options controller.Options
	// Controller is the process that Start started most recently.
	Controller *Controller

	set        *Set
	platform   Platform
	processes  []*Controller // all processes that were ever started
	namespaces []string      // created by the scenario
	nodes      []string      // created by the scenario
	described  bool          // whether ClusterProperties were created
	// The clients below are clients of the namespace.
	services corev1client.ServiceInterface
	slices   discoveryv1client.EndpointSliceInterface
	exports  mcsclient.ServiceExportInterface
	imports  mcsclient.ServiceImportInterface
}

func (s *Set) newCluster(name string, platform Platform) *Cluster {
	c := &Cluster{Name: name, set: s, platform: platform, Options: controller.DefaultOptions()}
	c.Options.LeaderElection, c.Options.Dial = false, platform.Dial
	var err error
	c.Kube, err = kubernetes.NewForConfig(platform.Admin)
	s.must(err)
	c.Dynamic, err = dynamic.NewForConfig(platform.Admin)
	s.must(err)
	c.MCS, err = mcs.NewForConfig(platform.Admin)
	s.must(err)
	c.services, c.slices = c.Kube.CoreV1().Services(s.namespace), c.Kube.DiscoveryV1().EndpointSlices(s.namespace)
	c.exports = c.MCS.MulticlusterV1beta1().ServiceExports(s.namespace)
	c.imports = c.MCS.MulticlusterV1beta1().ServiceImports(s.namespace)
	c.Options.Cluster = name
	c.SetClock(0)
	return c
}

// Must ends the scenario if there is an error.
func (c *Cluster) Must(err error) { c.set.must(err) }

// Start starts the controller.
func (c *Cluster) Start() { c.Controller = c.StartReplica() }

// Stop stops the controller as a signal does. It does nothing if the controller does not run.
func (c *Cluster) Stop() {
	if c.Controller != nil {
		c.Controller.Stop()
	}
}

// Kill kills the controller. It does nothing if the controller does not run.
func (c *Cluster) Kill() {
	if c.Controller != nil {
		c.Controller.Kill()
	}
}

// Restart calls Stop and Start.
func (c *Cluster) Restart() {
	c.Stop()
	c.Start()
}

// StartDNS starts the watch and the index of the plugin.
func (c *Cluster) StartDNS() {
	started, err := answers.Start(c.platform.DNS)
	c.set.must(err)
	c.DNS = started
}

// StopDNS stops them. It does nothing if they do not run.
func (c *Cluster) StopDNS() {
	if c.DNS != nil {
		c.DNS.Stop()
		c.DNS = nil
	}
}

// SetClock gives the next controller a clock that is off by wrong.
func (c *Cluster) SetClock(wrong time.Duration) { c.Options.Clock = NewClock(c.set.Rate(), wrong) }

// Metric returns the value of a gauge of the controller, and whether it exists. Labels are pairs of name and value.
func (c *Cluster) Metric(name string, labels ...string) (float64, bool) {
	want := map[string]string{}
	for i := 0; i < len(labels); i += 2 {
		want[labels[i]] = labels[i+1]
	}
	for _, metric := range c.metrics(name) {
		if maps.Equal(metric.labels, want) {
			return metric.value, true
		}
	}
	return 0, false
}

type metric struct {
	labels map[string]string
	value  float64
}

func (c *Cluster) metrics(name string) (metrics []metric) {
	families, err := c.Controller.registry.Load().Gather()
	c.set.must(err)
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, each := range family.GetMetric() {
			labels := map[string]string{}
			for _, pair := range each.GetLabel() {
				labels[pair.GetName()] = pair.GetValue()
			}
			metrics = append(metrics, metric{labels, each.GetGauge().GetValue()})
		}
	}
	return metrics
}

// ExpectMetric waits until a gauge has a value.
func (c *Cluster) ExpectMetric(want float64, name string, labels ...string) {
	c.set.Becomes(fmt.Sprint(name, labels, " of ", c.Name), fmt.Sprint(want, true), func() (string, error) {
		return fmt.Sprint(c.Metric(name, labels...)), nil
	})
}

// Judged waits until the reader's judgement of the source has this reason.
func (s *Set) Judged(p Pair, reason string) {
	s.Becomes("reason of "+p.Reader.Name+" for the state of "+p.Source.Name, reason, func() (string, error) {
		for _, each := range p.Reader.metrics("clusterset_controller_member_state") {
			if each.labels["member"] == p.Source.Name {
				return each.labels["reason"], nil
			}
		}
		return "", nil
	})
}

// LeaseSays waits until the Lease of a member has this state or, if state is empty, does not exist.
func (s *Set) LeaseSays(p Pair, state string) {
	s.Becomes("Lease of "+p.Source.Name+" in "+p.Reader.Name, state, func() (string, error) {
		lease := p.Reader.Lease(memberstate.LeasePrefix + p.Source.Name)
		return cmp.Or(lease.Annotations[memberstate.StateAnnotation], lease.Name), nil
	})
}

// Lease returns a Lease of the controllers, or an empty one if it does not exist.
func (c *Cluster) Lease(name string) *coordinationv1.Lease {
	lease, err := c.Kube.CoordinationV1().Leases(system).Get(c.set.Context(), name, metav1.GetOptions{})
	c.set.must(ignoreNotFound(err))
	return lease
}

// DeleteLease deletes a Lease of the controllers, if it exists.
func (c *Cluster) DeleteLease(name string) {
	c.set.must(ignoreNotFound(c.Kube.CoordinationV1().Leases(system).Delete(c.set.Context(), name, metav1.DeleteOptions{})))
}

// ExpectEvent waits for an Event on an object with this reason and all words, and returns its message.
func (c *Cluster) ExpectEvent(object metav1.Object, reason string, words ...string) (message string) {
	c.set.Eventually("Event "+reason+" on "+object.GetName(), func() (err error) {
		message, err = c.event(object, reason, words)
		return err
	})
	return message
}
