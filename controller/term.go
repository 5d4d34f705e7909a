// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes"
	kubernetesscheme "k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/accept"
	"github.com/clusterset-dns/clusterset-dns/controller/apply"
	"github.com/clusterset-dns/clusterset-dns/controller/canary"
	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/heartbeat"
	"github.com/clusterset-dns/clusterset-dns/controller/input"
	"github.com/clusterset-dns/clusterset-dns/controller/local"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/controller/membership"
	"github.com/clusterset-dns/clusterset-dns/controller/memberstate"
	"github.com/clusterset-dns/clusterset-dns/controller/metrics"
	"github.com/clusterset-dns/clusterset-dns/controller/properties"
	"github.com/clusterset-dns/clusterset-dns/controller/reconciler"
	"github.com/clusterset-dns/clusterset-dns/controller/statusz"
)

// component is the source of Events.
const component = "clusterset-controller"

// lead does the work of the leader until the context ends.
func (c *Controller) lead(ctx context.Context, cluster string, caches *caches) error {
	ctx, stop := context.WithCancel(ctx)
	var group sync.WaitGroup
	defer c.stuck.set("")
	defer group.Wait()
	defer stop()
	for {
		wrong, err := c.checkNamespace(ctx)
		if wrong != nil {
			return wrong
		}
		if err == nil {
			break
		}
		select {
		case <-ctx.Done():
			return nil
		case <-c.options.Clock.After(DefaultRetryPeriod):
		}
	}
	recorder, stopRecorder := newRecorder(ctx, c.client)
	defer stopRecorder()

	// The caches of the local cluster come first: nothing is deleted before it is known what exists and which members
	// there are.
	c.readiness.set(notFull)
	if !caches.wait(ctx) {
		return nil
	}
	read := make(chan struct{})
	r := c.newReconciler(klog.FromContext(ctx), cluster, caches, recorder, read)
	defer r.ShutDown()
	c.readiness.set("the IP families of the local cluster are not known yet")
	probe := func(ctx context.Context) ([]corev1.IPFamily, error) {
		return apply.AskIPFamilies(ctx, c.client, c.options.Namespace)
	}
	services, err := local.Services(ctx, c.client, probe)
	if err != nil {
		return err
	}
	r.IPFamilies, r.ServiceCIDRs = services.Families, services.CIDRs
	r.LimitIPs(maxImportIPs(services.IPs))
	uid := r.Local.KubeSystemUID()
	if uid == "" {
		return errors.New("the local cluster has no namespace kube-system")
	}
	var paths *canary.Paths
	if c.options.Canary != nil {
		paths = canary.NewPaths(c.options.limits(), klog.FromContext(ctx), r.Tracker.Reconsider)
		r.Tracker.Add(paths)
	}
	leases, err := memberstate.NewLeases(ctx, c.client, c.options.Namespace, r.Tracker)
	if err != nil {
		return err
	}
	if err := r.Properties.Begin(ctx, c.client, c.options.Namespace, cluster, uid); err != nil {
		return nil // the term ends
	}
	r.Attach()
	group.Go(func() { r.Tracker.Run(ctx) })
	group.Go(func() { r.Members.Run(ctx) })
	select {
	case <-ctx.Done():
		return nil
	case <-r.Members.Known():
	}
	record := heartbeat.NewRecord(heartbeat.RecordConfig{
		Clock: c.options.Clock, After: c.options.StaleAfter, Inputs: r.Gate,
		Prober: apply.SliceProbe{Client: c.client, Namespace: c.options.Namespace, Cluster: cluster, Set: c.options.ClusterSet},
	}, r.Exported())
	context.AfterFunc(ctx, record.TermEnds)
	r.Applier.Progress = record.Progresses
	group.Go(func() {
		defer close(read)
		heartbeatFirst(ctx, c.options.Clock, record)
	})
	c.stuck.check(func() string { return record.Stuck(stuckAfter) })
	defer c.metrics.Lead(&metrics.Leader{
		Clock: c.options.Clock, Queue: r, API: r.API, Local: r.Local, Members: r.Members, Tracker: r.Tracker,
		Record: record,
	})()
	defer c.states.Lead(&statusz.Leader{Reconciler: r, Record: record, Counted: c.metrics, Version: c.options.Version})()
	c.readiness.check(func() string {
		_, lost := r.API.Access()
		return lost.Reason
	})
	beat := heartbeat.NewRenewer(heartbeat.Config{
		Client: c.client, Namespace: c.options.Namespace, Cluster: cluster, KubeSystemUID: uid,
		Version: c.options.Version, Clock: c.options.Clock, Recorder: recorder, Record: record, Queue: r,
		Annotations: func() map[string]string {
			return map[string]string{
				accept.PublishedAnnotation: r.PolicyText(klog.FromContext(ctx)), properties.Annotation: r.Properties.Text(),
				member.HeartbeatSetAnnotation: string(c.options.ClusterSet),
				member.DrainAnnotation:        drains(r.Local.Namespace(c.options.Namespace)),

				member.HeartbeatCanariesAnnotation: c.canaries(r.Local),
			}
		},
	})
	beat.Announce(ctx)
	group.Go(func() { beat.Run(ctx) })
	group.Go(func() { leases.Run(ctx) })
	if c.options.Canary != nil {
		group.Go(func() { c.prober(r.Members, paths).Run(ctx) })
	}
	group.Go(func() {
		followVersion(ctx, c.client.Discovery().RESTClient(), c.options.Clock, func() {
			if r.Applier.Retry() {
				r.EnqueueAll()
			}
		})
	})
	klog.FromContext(ctx).Info("Started", "cluster", cluster, "clusterset", c.options.ClusterSet, "namespace",
		c.options.Namespace)
	r.Run(ctx, workers, record)
	return nil
}

// checkNamespace returns what is wrong if the namespace is that of the controller of another cluster set: the two would
// share their members, and one of them would stand by for the other. The error is that of an API server that does not
// answer.
func (c *Controller) checkNamespace(ctx context.Context) (wrong, err error) {
	lease, err := c.client.CoordinationV1().Leases(c.options.Namespace).Get(ctx, member.HeartbeatLease,
		metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err), apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		return nil, nil // there is none, or the heartbeat reports the error
	case err != nil:
		return nil, fmt.Errorf("read the heartbeat: %w", err)
	}
	set := export.Set(member.DescriptionOf(lease).ClusterSet)
	if set == c.options.ClusterSet {
		return nil, nil
	}
	return fmt.Errorf("namespace %s is that of the controller of %s, not of %s: use another one for each cluster set, "+
		"or, if that controller is gone for good, delete the Lease %s there",
		c.options.Namespace, set, c.options.ClusterSet, member.HeartbeatLease), nil
}

// heartbeatFirst returns once the exports were compared, so that the heartbeat is renewed, but waits for no longer than
// a heartbeat may be late. In a large cluster set, members that are read would take the processor from the comparison.
func heartbeatFirst(ctx context.Context, clock clock.WithTicker, record *heartbeat.Record) {
	timer := clock.NewTimer(member.HeartbeatInterval)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-record.Seen():
	case <-timer.C():
	}
}

// drains returns the value of member.DrainAnnotation for the heartbeat, by that of the namespace of the controller.
func drains(namespace *corev1.Namespace) string {
	if input.Standing(namespace).Demote {
		return "true"
	}
	return ""
}

// canaries returns the text of the canaries of the local cluster, empty for none.
func (c *Controller) canaries(own *local.Cluster) string {
	if c.options.Canary == nil {
		return ""
	}
	return canary.Encode(canary.Of(own.KubernetesSlices(
		types.NamespacedName{Namespace: c.options.Namespace, Name: canary.Service})))
}

// canaryKey returns the Key of the local cluster, which it reads until the context ends, also in replicas that do not
// lead.
func (c *Controller) canaryKey(ctx context.Context, group *sync.WaitGroup) canary.Key {
	var key atomic.Value
	key.Store("")
	group.Go(func() {
		for ctx.Err() == nil {
			lease, err := c.client.CoordinationV1().Leases(c.options.Namespace).Get(ctx, member.HeartbeatLease,
				metav1.GetOptions{})
			if err == nil {
				key.Store(string(lease.UID))
			}
			timer := c.options.Clock.NewTimer(member.HeartbeatInterval)
			select {
			case <-ctx.Done():
			case <-timer.C():
			}
			timer.Stop()
		}
	})
	return func() string { return key.Load().(string) }
}

// prober returns what probes the canaries of the members.
func (c *Controller) prober(members *member.Members, paths *canary.Paths) *canary.Prober {
	return &canary.Prober{
		Members: func() (probed []canary.Member) {
			for _, each := range members.List() {
				probed = append(probed, each)
			}
			return probed
		},
		Paths: paths, Dial: c.options.DialCanary,
	}
}

// sources returns the sources of members.
func (c *Controller) sources() (sources []member.Source) {
	for _, text := range c.options.MembersFrom {
		if spec, err := membership.Parse(text); err == nil { // complete reports the error
			sources = append(sources, membership.New(spec, c.options.Namespace, c.client, c.dynamic))
		}
	}
	return sources
}

// newReconciler connects the inputs to the reconciler, and the reconciler to the writer. Nothing runs yet.
func (c *Controller) newReconciler(
	logger klog.Logger, cluster string, caches *caches, recorder record.EventRecorder, read <-chan struct{},
) *reconciler.Reconciler {
	o, own := c.options, caches.local.Term()
	reporter := &memberstate.Reporter{Logger: logger, Recorder: recorder, Object: &corev1.ObjectReference{
		APIVersion: "coordination.k8s.io/v1", Kind: "Lease", Namespace: o.Namespace, Name: member.HeartbeatLease,
	}}
	tracker := memberstate.NewTracker(o.limits(), o.Clock, own, reporter)
	members := member.New(member.Config{
		Cluster: cluster, Set: o.ClusterSet, Static: o.Members, ExecCommands: o.ExecCommands, Sources: c.sources(),
		Limits: o.MemberLimits, Memory: o.MaxImportMemory, Local: own, Tracker: tracker, Reporter: reporter,
		Clock: o.Clock, Dial: o.DialMember, Read: read, Keep: apply.Credential(c.client),
	})
	applier := &apply.Applier{
		Core: c.client, Recorder: recorder, Clock: o.Clock,
		Metrics: metrics.Writer{Metrics: c.metrics, Cluster: cluster, Clock: o.Clock},
	}
	accepts, _ := o.accepts() // complete reports the error
	return reconciler.New(reconciler.Config{
		Gatherer: &input.Gatherer{
			Cluster: cluster, Set: o.ClusterSet, Namespace: o.Namespace, Prefer: o.Prefer,
			Admission: accept.Admission{Denied: o.DeniedNamespaces, Accept: accepts},
			Local:     own, Properties: caches.properties, Members: members, Tracker: tracker, Applier: applier,
		},
		API: caches.api, Gate: caches.gate, Recorder: recorder, Clock: o.Clock, Metrics: c.metrics,
	})
}

// newRecorder returns a recorder of Events, and a function that stops it.
func newRecorder(ctx context.Context, client kubernetes.Interface) (record.EventRecorder, func()) {
	scheme := runtime.NewScheme()
	utilruntime.Must(kubernetesscheme.AddToScheme(scheme))
	utilruntime.Must(v1beta1.Install(scheme))
	broadcaster := record.NewBroadcaster(record.WithContext(ctx))
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: client.CoreV1().Events("")})
	return broadcaster.NewRecorder(scheme, corev1.EventSource{Component: component}), broadcaster.Shutdown
}
