// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/test/bench/figure"
	"github.com/clusterset-dns/clusterset-dns/test/bench/objects"
)

// An opener is the method Watch of a client of client-go.
type opener func(context.Context, metav1.ListOptions) (watch.Interface, error)

// open opens a watch, reads it, and counts its events.
func open(ctx context.Context, group *errgroup.Group, watch opener, options metav1.ListOptions, events *atomic.Int64) error {
	w, err := watch(ctx, options)
	if err != nil {
		return err
	}
	group.Go(func() error {
		defer w.Stop()
		for range w.ResultChan() {
			events.Add(1)
		}
		if ctx.Err() == nil {
			return errors.New("a watch ended")
		}
		return nil
	})
	return nil
}

// rest opens the watches of a controller, and renews the Lease of its heartbeat. Nothing changes but heartbeats.
func (p *plain) rest(ctx context.Context, result *figure.Floor) error {
	secrets, err := p.CoreV1().Secrets(p.namespace).List(ctx, metav1.ListOptions{LabelSelector: member.ClusterLabel})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	group, ctx := errgroup.WithContext(ctx)
	var heartbeats, local atomic.Int64
	for i := range secrets.Items {
		if err := p.follow(ctx, group, &secrets.Items[i], &heartbeats); err != nil {
			return err
		}
	}
	core, mcs := p.CoreV1(), p.MCS.MulticlusterV1beta1()
	for _, each := range []opener{
		core.Services("").Watch, p.DiscoveryV1().EndpointSlices("").Watch, core.Namespaces().Watch, core.Nodes().Watch,
		core.Secrets(p.namespace).Watch, mcs.ServiceImports("").Watch, mcs.ServiceExports("").Watch,
	} {
		if err := open(ctx, group, each, metav1.ListOptions{}, &local); err != nil {
			return err
		}
	}
	// The API server sends all objects first.
	if err := wait.PollUntilContextTimeout(ctx, time.Second, time.Minute, false, func(context.Context) (bool, error) {
		arrived := local.Swap(0)
		return arrived == 0, nil
	}); err != nil {
		return err
	}
	err = during(result, func() error { return p.renew(ctx) })
	cancel()
	return errors.Join(err, group.Wait())
}

// follow opens the watches of a member.
func (p *plain) follow(ctx context.Context, group *errgroup.Group, secret *corev1.Secret, events *atomic.Int64) error {
	config, err := clientcmd.RESTConfigFromKubeConfig(secret.Data[member.KubeconfigKey])
	if err != nil {
		return err
	}
	client, err := objects.New(config)
	if err != nil {
		return err
	}
	leases, published := client.CoordinationV1().Leases(p.namespace), client.DiscoveryV1().EndpointSlices("")
	list, err := published.List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return err
	}
	id := secret.Labels[member.ClusterLabel]
	return errors.Join(
		open(ctx, group, leases.Watch, metav1.ListOptions{
			FieldSelector: "metadata.name=" + member.HeartbeatLease, ResourceVersion: list.ResourceVersion,
		}, events),
		open(ctx, group, published.Watch, metav1.ListOptions{
			LabelSelector: v1beta1.LabelSourceCluster + "=" + id, ResourceVersion: list.ResourceVersion,
		}, events))
}

// renew renews a Lease as a heartbeat is, and one as a leader's is.
func (p *plain) renew(ctx context.Context) error {
	leases := p.CoordinationV1().Leases(p.namespace)
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("floor-%d", os.Getpid())}}
	lease, err := leases.Create(ctx, lease, metav1.CreateOptions{})
	ticker := time.NewTicker(member.HeartbeatInterval)
	defer ticker.Stop()
	for began := time.Now(); err == nil && time.Since(began) < p.lasts; <-ticker.C {
		lease.Spec.RenewTime = ptr.To(metav1.NowMicro())
		lease, err = leases.Update(ctx, lease, metav1.UpdateOptions{})
	}
	return err
}
