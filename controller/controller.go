// SPDX-License-Identifier: Apache-2.0

// Package controller publishes the exports of its cluster, reads those of the other members of the set, and writes the
// imports of its own cluster.
package controller

import (
	"context"
	"errors"
	"sync"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/clusterset-dns/clusterset-dns/controller/heartbeat"
	"github.com/clusterset-dns/clusterset-dns/controller/informer"
	"github.com/clusterset-dns/clusterset-dns/controller/liveness"
	"github.com/clusterset-dns/clusterset-dns/controller/local"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/controller/probe"
	"github.com/clusterset-dns/clusterset-dns/controller/reconciler"
	"github.com/clusterset-dns/clusterset-dns/controller/scope"
	"github.com/clusterset-dns/clusterset-dns/controller/statusz"
)

// A controller maintains one cluster of the set.
//
// State flows one way. Watches of the local cluster and of the members enqueue the services that changed. A worker
// takes a service and reconciles it from its current state:
//
//	gather  the ServiceExport, Service and EndpointSlices of the local cluster become
//	        its own view; the slices that each member publishes, or the accepted
//	        copies if its data is not accepted now, become the view of the member
//	merge   all views, and the objects that exist, become the desired objects
//	apply   the desired objects are compared with those that exist, and written.
//	        The result of a write, such as an IP, counts in the next reconcile: an import
//	        exists first, then its Service, then it gets the IP and is ready
//
// Of several replicas only the leader does this. The others keep the caches of the local cluster, answer probes
// of paths, and serve metrics and health.
type controller struct {
	options   Options
	client    kubernetes.Interface
	dynamic   dynamic.Interface
	sources   []member.Source
	accepts   scope.Patterns
	readiness readiness
	states    *statusz.Server

	// own and api have the caches of the local cluster, and gate knows which of them are behind.
	own  *local.Cluster
	api  *local.API
	gate *informer.FreshnessGate
}

// Run works until the context ends, and then returns nil once everything has stopped and the leader Lease is released.
// Run returns an error if the process must restart: the id of the local cluster is unknown, the Lease was lost
// (ErrLost), or the MCS API changed (local.ErrChanged).
func Run(ctx context.Context, options Options) error {
	c, err := newController(options)
	if err != nil {
		return err
	}
	if c.options.Probes != nil {
		defer func() { _ = c.options.Probes.Close() }() // in case probe.Serve did not
	}
	asked := ctx
	ctx, end := context.WithCancelCause(asked)
	var group sync.WaitGroup
	defer group.Wait()
	defer end(nil)
	serve(ctx, &group, c.options.Listener, c.options.Health, c.options.Registry, &c.readiness, c.states)
	err = c.work(ctx, &group, end)
	switch {
	case asked.Err() != nil:
		return nil // it failed because everything stops
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return err
}

// work fills the caches of the local cluster once its id is known, and leads when this replica is elected. All replicas
// fill them, so a new leader need not list anything. The goroutines belong to the group; end stops all of them.
func (c *controller) work(ctx context.Context, group *sync.WaitGroup, end context.CancelCauseFunc) (err error) {
	cluster := c.options.Cluster
	if cluster == "" {
		if cluster, err = local.ID(ctx, c.dynamic); err != nil {
			return err
		}
	}
	if c.options.Probes != nil {
		group.Go(func() { probe.Serve(ctx, c.options.Probes, cluster, c.probeKey(ctx, group)) })
	}
	c.own.Start(ctx, group)
	if err := c.api.Open(ctx, group, end); err != nil {
		return err
	}
	if _, err := heartbeat.Last(ctx, c.client, c.options.Namespace, cluster); err != nil {
		return err
	}
	if !c.options.LeaderElection {
		return c.lead(ctx, cluster)
	}
	c.readiness.check(func() string {
		if c.full() {
			return ""
		}
		return starting()
	})
	// The election starts before the caches are full: meanwhile, the Lease of a killed leader runs out.
	return c.elect(ctx, func(ctx context.Context) error { return c.lead(ctx, cluster) })
}

// full reports whether the caches of the local cluster are full.
func (c *controller) full() bool { return c.own.HasSynced() && c.api.HasSynced() }

// lead does the work of the leader until the context ends.
func (c *controller) lead(ctx context.Context, cluster string) error {
	ctx, stop := context.WithCancel(ctx)
	var group sync.WaitGroup
	defer group.Wait()
	defer stop()
	recorder, stopRecorder := newRecorder(ctx, c.client)
	defer stopRecorder()

	// The caches of the local cluster come first: the controller must know the existing objects and members before it
	// deletes anything. After a broken watch, it starts only once the objects are listed again. All other caches are as current
	// as those of a running leader.
	c.readiness.check(starting)
	if !cache.WaitForCacheSync(ctx.Done(), c.full, c.gate.Current) {
		return nil
	}
	services, err := local.Services(ctx, c.client)
	if err != nil {
		return err
	}
	r := c.newReconciler(klog.FromContext(ctx), cluster, recorder, services)
	defer r.ShutDown()
	uid := r.Local.KubeSystemUID()
	if uid == "" {
		return errors.New("the local cluster has no namespace kube-system")
	}
	if c.options.Probes != nil {
		r.Tracker.DecodeTargets = probe.Decode
	}
	before, err := r.Tracker.Recall(ctx, c.client.CoordinationV1(), c.options.Namespace)
	if err != nil {
		return err
	}
	last, err := heartbeat.Last(ctx, c.client, c.options.Namespace, cluster)
	if err != nil {
		return err
	}
	published := ""
	if last.Annotations[member.HeartbeatUIDAnnotation] == uid {
		published = last.Annotations[scope.PropertiesAnnotation]
	}
	if err := r.Properties.Begin(ctx, published); err != nil {
		return nil // the context has ended
	}
	r.Attach()
	r.Members.Join(ctx, before)
	group.Go(func() { r.Tracker.Run(ctx) })
	beat := heartbeat.New(heartbeat.Config{
		Client: c.client, Namespace: c.options.Namespace, Cluster: cluster, Clock: c.options.Clock, Recorder: recorder,
		After: c.options.Liveness.StaleAfter, Late: r.Late, Retry: r.Retry,
		Annotations: func() map[string]string {
			pods, exposed := c.targets(r)
			own := reconciler.Standing(r.Local.Namespace(c.options.Namespace))
			return map[string]string{
				member.HeartbeatUIDAnnotation:            uid,
				member.HeartbeatVersionAnnotation:        c.options.Version,
				scope.PropertiesAnnotation:               r.Properties.Text(),
				member.DrainAnnotation:                   map[bool]string{true: "true"}[own.Demote],
				member.HeartbeatTargetsAnnotation:        pods,
				member.HeartbeatExposedTargetsAnnotation: exposed,
			}
		},
	}, r.Exported())
	group.Go(func() {
		// Reading members would compete for CPU with the comparison of the exports, for which the heartbeat waits.
		select {
		case <-ctx.Done():
		case <-beat.Seen():
		case <-c.options.Clock.After(liveness.HeartbeatInterval):
		}
		r.Members.Run(ctx)
	})
	c.states.Lead(&statusz.Leader{Reconciler: r, Heartbeat: beat})
	c.readiness.check(r.API.Missing)
	group.Go(func() { beat.Run(ctx) })
	if c.options.Probes != nil {
		prober := &probe.Prober{Requests: r.Tracker.Requests, Probed: r.Tracker.Probed, Dial: c.options.Dial}
		group.Go(func() { prober.Run(ctx) })
	}
	klog.FromContext(ctx).Info("Started", "cluster", cluster, "namespace", c.options.Namespace)
	r.Run(ctx, workers, beat)
	return nil
}
