// SPDX-License-Identifier: Apache-2.0

// Package controller publishes the exports of its cluster, reads those of the other members of the set, and writes the
// imports of its own cluster.
//
// README.md is its manual.
package controller

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/clusterset-dns/clusterset-dns/controller/canary"
	"github.com/clusterset-dns/clusterset-dns/controller/leader"
	"github.com/clusterset-dns/clusterset-dns/controller/local"
	"github.com/clusterset-dns/clusterset-dns/controller/metrics"
	"github.com/clusterset-dns/clusterset-dns/controller/statusz"
)

// A Controller maintains one cluster of the set.
//
// State flows one way. Watches of the local cluster and of the members enqueue the services that changed. A worker
// takes a service and reconciles it from its current state:
//
//	input   the ServiceExport, Service and EndpointSlices of the local cluster become
//	        its own view; the slices that each member publishes, or their copies if
//	        the member cannot speak for itself, become the view of the member
//	merge   all views, and the objects that exist, become the desired objects
//	apply   the desired objects are compared with those that exist, and written.
//	        The result of a write, such as an IP, counts in the next reconcile
//
// Of several replicas only the leader does this. The others keep the caches of the local cluster, and nothing else.
type Controller struct {
	options    Options
	config     *rest.Config
	httpClient *http.Client
	client     kubernetes.Interface
	dynamic    dynamic.Interface
	metrics    *metrics.Metrics
	readiness  readiness
	// stuck is why the process must restart.
	stuck  readiness
	states *statusz.Server
}

// stuckAfter is how long the process may make no progress before /healthz fails. It is longer than any reconcile, and
// than a passing outage.
const stuckAfter = 5 * time.Minute

// New returns a controller that is not running and has sent no request.
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
		return nil, fmt.Errorf("local cluster: %w", err)
	}
	client, err := kubernetes.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("local cluster: %w", err)
	}
	dynamicClient, err := dynamic.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("local cluster: %w", err)
	}
	counted, err := metrics.New(options.Registry, options.Version)
	if err != nil {
		return nil, err
	}
	return &Controller{
		options: options, config: config, httpClient: httpClient,
		client: client, dynamic: dynamicClient, metrics: counted, states: statusz.NewServer(),
	}, nil
}

// Run is New and Controller.Run in one.
func Run(ctx context.Context, options Options) error {
	c, err := New(options)
	if err != nil {
		return err
	}
	return c.Run(ctx)
}

// Run works until the context ends, and then returns nil once everything has stopped and the leader Lease is released.
// A replica that loses the Lease stops the work, and waits to lead again. Run returns an error if the controller cannot
// continue: the id of the local cluster is unknown. It may be called once.
func (c *Controller) Run(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	var group sync.WaitGroup
	defer group.Wait()
	defer stop()
	c.stuck.set("")
	serve(ctx, &group, c.options.Listener, c.options.Health, c.options.Registry, &c.stuck, &c.readiness, c.states)
	cluster := c.options.Cluster
	var err error
	if cluster == "" {
		cluster, err = local.ID(ctx, c.dynamic)
	}
	if err == nil {
		err = validateMembers(cluster, c.options.Members)
	}
	if c.options.Canary != nil {
		if err == nil {
			group.Go(func() { canary.Serve(ctx, c.options.Canary, cluster, c.canaryKey(ctx, &group)) })
		} else {
			_ = c.options.Canary.Close()
		}
	}
	var caches *caches
	if err == nil {
		caches, err = c.newCaches()
	}
	if err == nil {
		caches.start(ctx, &group)
	}
	if err == nil {
		err, _ = c.checkNamespace(ctx)
	}
	switch {
	case err != nil:
	case !c.options.LeaderElection:
		err = c.lead(ctx, cluster, caches)
	default:
		c.readiness.check(caches.missing)
		err = leader.Run(ctx, leader.Config{
			Client:        c.client,
			Namespace:     c.options.Namespace,
			Identity:      c.options.Identity,
			LeaseDuration: c.options.LeaseDuration,
			RenewDeadline: c.options.RenewDeadline,
			RetryPeriod:   c.options.RetryPeriod,
			Elected:       c.states.Elected,
		}, func(ctx context.Context) error {
			defer c.readiness.check(caches.missing)
			return c.lead(ctx, cluster, caches)
		})
	}
	if ctx.Err() != nil {
		return nil // it failed because everything stops
	}
	return err
}
