// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/clusterset-dns/clusterset-dns/controller"
	"github.com/clusterset-dns/clusterset-dns/controller/local"
	"github.com/clusterset-dns/clusterset-dns/controller/memberstate"
)

// A Cluster is an API server, its controller and its DNS. Its methods end the
// scenario if the API server does not do what they ask for.
type Cluster struct {
	*Objects
	// Options are those of the next controller that Start starts.
	Options controller.Options

	platform   Platform
	written    *writes
	registry   atomic.Pointer[prometheus.Registry] // that of the controller that was started last
	namespaces []string                            // that the scenario created
	stop       func()                              // nil if no controller runs
}

func (s *Set) newCluster(name string, platform Platform) *Cluster {
	c := &Cluster{
		Objects: s.objects(name, platform.Admin), platform: platform, Options: platform.Options, written: newWrites(),
	}
	c.Options.Cluster = name
	c.Options.Config = rest.CopyConfig(platform.Controller)
	c.Options.Config.Wrap(c.written.wrap)
	c.SetClock(0)
	return c
}

// Start starts the controller.
func (c *Cluster) Start() {
	ctx, cancel := context.WithCancel(klog.NewContext(context.Background(), logr.Discard()))
	done, options := make(chan struct{}), c.Options
	next := func() controller.Options {
		options.Registry = prometheus.NewRegistry()
		c.registry.Store(options.Registry)
		return options
	}
	first := next()
	go func() {
		defer close(done)
		if err := Run(ctx, first, next); err != nil {
			c.set.Errorf("the controller of %s ended with: %v", c.Name, err)
		}
	}()
	c.stop = func() {
		cancel()
		<-done
	}
}

// Stop stops it as a signal does. It does nothing if none runs.
func (c *Cluster) Stop() {
	if c.stop != nil {
		c.stop()
		c.stop = nil
	}
}

// Restart is Stop and Start.
func (c *Cluster) Restart() {
	c.Stop()
	c.Start()
}

// SetClock gives the next controller a clock that is wrong by a time.
func (c *Cluster) SetClock(wrong time.Duration) { c.Options.Clock = NewClock(c.set.Rate(), wrong) }

// Metric returns the value of a gauge of the controller, and whether it has it. Labels are a list of names and values.
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
	families, err := c.registry.Load().Gather()
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

// Judged waits until the reader judges the source so.
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

// LeaseSays waits until the Lease of a member has a state, or none is there if it is empty.
func (s *Set) LeaseSays(p Pair, state string) {
	s.Eventually("Lease of "+p.Source.Name+" in "+p.Reader.Name, func() error {
		lease, err := p.Reader.Kube.CoordinationV1().Leases(system).Get(s.Context(),
			memberstate.LeasePrefix+p.Source.Name, metav1.GetOptions{})
		if ignoreNotFound(err) != nil {
			return err
		}
		if got := lease.Annotations[memberstate.StateAnnotation]; got != state || (err == nil) != (state != "") {
			return fmt.Errorf("it says %q, not %q: %w", got, state, err)
		}
		return nil
	})
}

// ExpectEvent waits for an Event on an object that says all words.
func (c *Cluster) ExpectEvent(object metav1.Object, reason string, words ...string) (message string) {
	c.set.Eventually("Event "+reason+" on "+object.GetName(), func() (err error) {
		message, err = c.event(object, reason, words)
		return err
	})
	return message
}

// Run runs a controller, and others with the next options while it ends because it is to restart, as a kubelet does.
func Run(ctx context.Context, options controller.Options, next func() controller.Options) error {
	err := controller.Run(ctx, options)
	for errors.Is(err, controller.ErrLost) || errors.Is(err, local.ErrChanged) {
		err = controller.Run(ctx, next())
	}
	return err
}
