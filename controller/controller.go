// SPDX-License-Identifier: Apache-2.0

// Package controller publishes what its cluster exports, reads what the other
// members of the set publish, and writes the imports of its own cluster.
//
// README.md is its manual.
package controller

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/clusterset-dns/clusterset-dns/controller/apply"
	"github.com/clusterset-dns/clusterset-dns/controller/liveness"
	"github.com/clusterset-dns/clusterset-dns/controller/mcsapi"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/controller/vouch"
)

// How a service whose reconciliation failed is tried again, each on its own.
const (
	backoffBase = 5 * time.Millisecond
	backoffCap  = 30 * time.Second
)

// A Controller keeps one cluster of the set.
//
// State flows one way. Watches of the own cluster and of the members name the
// services that something changed about; the queue holds those names, once
// each. A worker takes one and looks at everything anew:
//
//	gather  the own ServiceExport, Service and EndpointSlices become the own
//	        view (export.FromService); the slices that each member publishes,
//	        or the copies of them here while it was not seen yet, become its
//	        view (export.FromSlices)
//	merge   all views, and what exists here, become what should exist here
//	apply   what should exist is compared with what does, and written. What a
//	        write yields, such as an IP, counts in the next pass
//
// Only the leader among several replicas does any of it.
type Controller struct {
	options    Options
	config     *rest.Config
	httpClient *http.Client
	client     kubernetes.Interface
	dynamic    dynamic.Interface
	metadata   metadata.Interface
	metrics    *metrics
	readiness  readiness
	// stuck says why only a new process helps.
	stuck readiness
}

// stuckAfter is how long the process may make no progress before /healthz
// fails. It is longer than any reconcile, and than an outage that passes.
const stuckAfter = 5 * time.Minute

// New returns a controller that runs nothing yet and has asked the API server
// nothing.
func New(options Options) (*Controller, error) {
	options, err := options.complete()
	if err != nil {
		return nil, err
	}
	config := rest.CopyConfig(options.Config)
	config.QPS = -1 // the API server's priority and fairness is the limit
	config.ContentType = "application/vnd.kubernetes.protobuf"
	config.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	config.UserAgent = rest.DefaultKubernetesUserAgent()
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("own cluster: %w", err)
	}
	client, err := kubernetes.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("own cluster: %w", err)
	}
	dynamicClient, err := dynamic.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("own cluster: %w", err)
	}
	metadataClient, err := metadata.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("own cluster: %w", err)
	}
	c := &Controller{options: options, config: config, httpClient: httpClient, client: client, dynamic: dynamicClient, metadata: metadataClient}
	if c.metrics, err = newMetrics(options.Registry, options.Version); err != nil {
		return nil, err
	}
	return c, nil
}

// Run is New and Controller.Run in one.
func Run(ctx context.Context, options Options) error {
	c, err := New(options)
	if err != nil {
		return err
	}
	return c.Run(ctx)
}

// Run works until the context ends, and then returns nil once everything has
// stopped and the leader Lease is given up. A replica that loses the Lease stops
// the work, and waits to lead again. An error is returned where the controller
// cannot go on: the id of the own cluster is unknown. It may be called once.
func (c *Controller) Run(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	var group sync.WaitGroup
	defer group.Wait()
	defer stop()
	if c.options.Listener != nil {
		c.stuck.set("")
		serve(ctx, &group, c.options.Listener, c.options.Registry, &c.stuck, &c.readiness)
	}
	cluster, err := ownCluster(ctx, c.options.Cluster, c.dynamic)
	if err != nil {
		return c.unlessEnded(ctx, err)
	}
	if err := validateMembers(cluster, c.options.Members); err != nil {
		return err
	}
	if !c.options.LeaderElection {
		return c.unlessEnded(ctx, c.lead(ctx, cluster))
	}
	return c.elect(ctx, cluster)
}

// unlessEnded drops what failed because everything stops.
func (c *Controller) unlessEnded(ctx context.Context, err error) error {
	select {
	case <-ctx.Done():
		return nil
	default:
		return err
	}
}

// lead does the work of the leader until the context ends.
func (c *Controller) lead(ctx context.Context, cluster string) (err error) {
	ctx, stop := context.WithCancel(ctx)
	var group sync.WaitGroup
	defer c.stuck.set("")
	defer group.Wait()
	defer stop()

	// Caches of the own cluster first: nothing is removed before it is known
	// what is there and which members there are.
	c.readiness.set("the caches of the own cluster are not full yet")
	r, err := c.newReconciler(ctx, cluster)
	if err != nil {
		return err
	}
	defer r.stop()
	defer r.queue.ShutDown()
	r.local.run(ctx, &group)
	group.Go(func() { r.api.Run(ctx) })
	if !r.local.wait(ctx) {
		return nil
	}
	c.readiness.set("the IP families of the own cluster are not known yet")
	var serviceIPs int
	if r.families, serviceIPs, err = serviceIPFamilies(ctx, c.client, c.options.Namespace); err != nil {
		return err
	}
	r.shares = newShares(c.options.MaxImports, maxImportIPs(c.options.MaxImportIPs, serviceIPs), r.enqueue, r.limited)
	kubeSystem := r.local.namespace("kube-system")
	if kubeSystem == nil {
		return errors.New("the own cluster has no namespace kube-system")
	}

	leases := &memberLeases{client: c.client, namespace: c.options.Namespace, sentinel: r.sentinel}
	if r.sentinel.left, err = leases.load(ctx); err != nil {
		return err
	}
	group.Go(func() { r.sentinel.run(ctx) })
	group.Go(func() { r.members.Run(ctx, r.credentialsChanged) })
	select {
	case <-ctx.Done():
		return nil
	case <-r.members.Known():
	}
	select {
	case <-ctx.Done():
		return nil
	case <-r.api.Looked():
	}
	r.record = vouch.New(vouch.Config{
		Clock:  c.options.Clock,
		After:  c.options.StaleAfter,
		Inputs: r.inputs.Late,
		Probe: func(ctx context.Context) error {
			return apply.TrySlice(ctx, c.client, c.options.Namespace, cluster)
		},
	}, r.exported())
	context.AfterFunc(ctx, r.record.TermEnds)
	c.stuck.check(func() string { return r.record.Stuck(stuckAfter) })
	defer c.metrics.lead(r)()
	c.readiness.check(func() string {
		_, lost := r.api.Access()
		return lost.Reason
	})
	beat := &heartbeat{
		client:        c.client,
		namespace:     c.options.Namespace,
		cluster:       cluster,
		kubeSystemUID: string(kubeSystem.UID),
		version:       c.options.Version,
		clock:         c.options.Clock,
		recorder:      r.recorder,
		record:        r.record,
		retry: func(service types.NamespacedName) {
			r.queue.Forget(service)
			r.enqueue(service)
		},
	}
	beat.announce(ctx)
	group.Go(func() { beat.run(ctx) })
	group.Go(func() { leases.run(ctx) })
	group.Go(func() {
		followVersion(ctx, c.client.Discovery().RESTClient(), c.options.Clock, func() {
			if r.applier.Retry() {
				r.enqueueAll()
			}
		})
	})
	group.Go(func() { r.catchUp(ctx, c.options.Clock) })
	for range c.options.Workers {
		group.Go(func() { r.work(ctx) })
	}
	klog.FromContext(ctx).Info("Started", "cluster", cluster, "namespace", c.options.Namespace)
	<-ctx.Done()
	r.queue.ShutDown()
	return nil
}

// newReconciler wires the caches, the members and the writer to a queue.
// Nothing runs yet.
func (c *Controller) newReconciler(ctx context.Context, cluster string) (*reconciler, error) {
	r := &reconciler{
		cluster:   cluster,
		denied:    c.options.DeniedNamespaces,
		namespace: c.options.Namespace,
		metrics:   c.metrics,
		clock:     c.options.Clock,

		serveHandMade: c.options.HandMadeImports,
		prefer:        c.options.Prefer,
	}
	r.local = newLocal(c.client, c.metadata, &r.inputs, c.options.Namespace)
	var err error
	if r.api, err = mcsapi.NewFollower(c.config, c.httpClient, &r.inputs, r.objectHandler(), r.enqueueAll); err != nil {
		return nil, err
	}
	recorder, stop := newRecorder(ctx, c.client)
	r.stop, r.recorder = stop, recorder
	reporter := &reporter{logger: klog.FromContext(ctx), recorder: recorder}
	r.sentinel = newSentinel(c.options.limits(), c.options.Clock)
	r.sentinel.known, r.sentinel.changed = r.contributed, r.enqueueCluster
	r.sentinel.tell = func(before, after liveness.Judgement) { reporter.judged(r.members, before, after) }
	r.members = member.NewSet(member.Config{
		Cluster:       cluster,
		KubeSystemUID: r.local.kubeSystemUID,
		Static:        c.options.Members,
		Secrets:       r.local.credentials,
		Limits:        c.options.MemberLimits,
		Memory:        c.options.MaxImportMemory,
		Imported:      r.imported,
		Changed:       r.enqueue,
		MemberChanged: r.memberChanged,
		Joins:         r.sentinel.joins,
		Read:          r.sentinel.read,
		Listing:       r.sentinel.listing,
		Report:        reporter.report,
		Clock:         c.options.Clock,
		Dial:          c.options.DialMember,
	})
	r.applier = newApplier(c.client, recorder, c.options.Clock, c.metrics, cluster)
	r.applier.Removing = func(slice *discoveryv1.EndpointSlice) { r.remembered.removing(member.ServiceOf(slice), slice.UID) }
	r.applier.Keeping = func(slice *discoveryv1.EndpointSlice) { r.remembered.keeping(member.ServiceOf(slice), slice.UID) }
	r.queue = newQueue(r.applier.Echo)
	r.credentialsChanged = r.handle()
	return r, nil
}
