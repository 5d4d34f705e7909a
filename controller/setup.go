// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/apply"
	"github.com/clusterset-dns/clusterset-dns/controller/clusterprofile"
	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/informer"
	"github.com/clusterset-dns/clusterset-dns/controller/local"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/controller/memberstate"
	"github.com/clusterset-dns/clusterset-dns/controller/probe"
	"github.com/clusterset-dns/clusterset-dns/controller/reconciler"
	"github.com/clusterset-dns/clusterset-dns/controller/scope"
	"github.com/clusterset-dns/clusterset-dns/controller/statusz"
)

// newController returns a controller that is not running and has sent no request.
func newController(options Options) (*controller, error) {
	if err := options.validate(); err != nil {
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
	// An API server redirects nothing. Behind a redirect, a write would become a read, and its answer look like success.
	httpClient.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	client, err1 := kubernetes.NewForConfigAndClient(config, httpClient)
	dynamicClient, err2 := dynamic.NewForConfigAndClient(config, httpClient)
	if err := errors.Join(err1, err2); err != nil {
		return nil, fmt.Errorf("local cluster: %w", err)
	}
	gate := &informer.FreshnessGate{}
	c := &controller{
		own:     local.New(client, gate, options.Namespace, corev1.NodeAddressType(options.NodeAddresses)),
		options: options, client: client, dynamic: dynamicClient, gate: gate,
		api: local.NewAPI(config, httpClient, client.Discovery(), dynamicClient, gate),
	}
	for _, text := range slices.Compact(slices.Sorted(slices.Values(options.MembersFrom))) {
		source, err := clusterprofile.New(text, options.Namespace, client, dynamicClient)
		if err != nil {
			return nil, fmt.Errorf("--members-from: %w", err)
		}
		c.sources = append(c.sources, source)
	}
	if c.accepts, err = scope.ParsePatterns(strings.Join(options.Accept, ",")); err != nil {
		return nil, fmt.Errorf("--accept: %w", err)
	}
	c.states, err = statusz.NewServer(options.Registry, options.Version)
	return c, err
}

// newReconciler connects the inputs to the reconciler, and the reconciler to the writer. Nothing runs yet.
func (c *controller) newReconciler(
	logger klog.Logger, cluster string, recorder record.EventRecorder, services []netip.Prefix,
) *reconciler.Reconciler {
	o := c.options
	reporter := &memberstate.Reporter{Logger: logger, Recorder: recorder}
	tracker := memberstate.NewTracker(o.Liveness, o.Clock, c.own.ServicesFrom, reporter)
	members := member.New(member.Config{
		Cluster: cluster, Tokens: o.MemberTokens, Sources: c.sources,
		Limits: o.MemberLimits, Memory: maxImportMemory(), Local: c.own, Tracker: tracker, Report: reporter.Report,
		Clock: o.Clock, Dial: o.Dial, SaveSecret: apply.Credential(c.client),
	})
	applier := &apply.Applier{API: c.api, Core: c.client, Recorder: recorder, Clock: o.Clock}
	return reconciler.New(reconciler.Config{
		Cluster: cluster, Namespace: o.Namespace, ServiceCIDRs: services, Prefer: o.Prefer,
		Expose:    export.Exposure(o.Expose),
		Frontends: &local.Frontends{List: local.ListGateways(c.dynamic), Lookup: o.Lookup, Clock: o.Clock}, Pods: local.NewPods(c.client.CoreV1()),
		ProbeService: types.NamespacedName{Namespace: o.Namespace, Name: probe.ExposedService},
		Admission:    scope.Admission{Denied: o.DeniedNamespaces, Accept: c.accepts},
		Local:        c.own, Properties: local.NewProperties(c.dynamic, o.Clock, o.Network), Members: members, Tracker: tracker, Applier: applier,
		Clock: o.Clock,
		API:   c.api, Gate: c.gate, Observe: c.states.Reconciled,
	})
}

// The recorder needs the types of the MCS API for Events on its objects.
func init() { utilruntime.Must(v1beta1.Install(scheme.Scheme)) }

// newRecorder returns a recorder of Events, and a function that stops it.
func newRecorder(ctx context.Context, client kubernetes.Interface) (record.EventRecorder, func()) {
	broadcaster := record.NewBroadcaster(record.WithContext(ctx))
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: client.CoreV1().Events("")})
	return broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "clusterset-controller"}), broadcaster.Shutdown
}
