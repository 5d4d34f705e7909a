// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	discoveryv1client "k8s.io/client-go/kubernetes/typed/discovery/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/record"
)

// clients are the clients of one API server.
type clients struct {
	discovery *discoveryv1client.DiscoveryV1Client
	core      *corev1client.CoreV1Client
	imports   dynamic.Interface
}

// importVersions are the served versions of the ServiceImport APIs, in order of preference. The fields that DNS needs
// are the same in both versions of mcs-api (v0.5.2) and in GKE's, which is an older form.
var importVersions = map[Resource][]schema.GroupVersion{
	ServiceImports:    {{Group: GroupMCS, Version: "v1beta1"}, {Group: GroupMCS, Version: "v1alpha1"}},
	GKEServiceImports: {{Group: GroupGKE, Version: "v1"}},
}

func newClients(config *rest.Config) (*clients, error) {
	config = rest.CopyConfig(config)
	config.WarningHandler = rest.NoWarnings{} // hides deprecation warnings: the older versions are used on purpose
	config.DisableCompression = true          // as in Kubernetes' own components: compression costs more than it saves
	config.QPS = -1                           // a start makes up to three requests per namespace and resource
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("connecting to %s: %w", config.Host, err)
	}
	protobuf := rest.CopyConfig(config)
	protobuf.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	protobuf.ContentType = "application/vnd.kubernetes.protobuf"
	c := new(clients)
	if c.discovery, err = discoveryv1client.NewForConfigAndClient(protobuf, httpClient); err == nil {
		c.core, err = corev1client.NewForConfigAndClient(protobuf, httpClient)
	}
	if err == nil {
		c.imports, err = dynamic.NewForConfigAndClient(config, httpClient)
	}
	if err != nil {
		return nil, fmt.Errorf("connecting to %s: %w", config.Host, err)
	}
	return c, nil
}

// listImports lists and watches ServiceImports in the first version that the API server serves.
func (c *clients) listImports(resource Resource, namespace, labels string) *cache.ListWatch {
	each := func(options *metav1.ListOptions, ask func(dynamic.ResourceInterface) error) (err error) {
		options.LabelSelector = labels
		for _, version := range importVersions[resource] {
			err = ask(c.imports.Resource(version.WithResource(string(ServiceImports))).Namespace(namespace))
			if !apierrors.IsNotFound(err) {
				break
			}
		}
		return err
	}
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (list runtime.Object, err error) {
			err = each(&options, func(of dynamic.ResourceInterface) (err error) {
				list, err = of.List(ctx, options)
				return err
			})
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (w apiwatch.Interface, err error) {
			err = each(&options, func(of dynamic.ResourceInterface) (err error) {
				w, err = of.Watch(ctx, options)
				return err
			})
			return w, err
		},
	}
}

// Label selectors of EndpointSlices. No slice matches both.
const (
	withServiceName = mcsv1beta1.LabelServiceName
	mirroredOnly    = discoveryv1.LabelManagedBy + "=" + record.MirroredBy + ",!" + mcsv1beta1.LabelServiceName
)

// servicesWithIP is a field selector that excludes headless Services, which have no address.
const servicesWithIP = "spec.clusterIP!=None"

// list lists and watches the objects of a resource that labels and fields select, in one namespace or in all.
func list(from rest.Interface, resource, namespace, labels, fields string) *cache.ListWatch {
	return cache.NewFilteredListWatchFromClient(from, resource, namespace, func(options *metav1.ListOptions) {
		options.LabelSelector, options.FieldSelector = labels, fields
	})
}

// retry is the backoff between attempts to list or watch a resource. It never exceeds 3 s: after an outage each
// resource recovers separately, and until all have, an answer may combine a new import with old slices.
var retry = wait.Backoff{Duration: 200 * time.Millisecond, Factor: 2, Jitter: 0.5, Steps: 6, Cap: 2 * time.Second}

// errBroken makes a reflector list again after a watch that did not end at its timeout. A watch could resume at the
// last resourceVersion, but if etcd was restored from a backup meanwhile, that version is in the future, and the watch
// would send nothing until etcd reaches it.
var errBroken = apierrors.NewResourceExpired("the last watch broke")

// slack is how far from the expected timeout a watch may end and still count as timed out. It is shorter than a restore
// of etcd, and shorter than the time to notice a lost connection.
const slack = 5 * time.Second

// reflectors returns the reflectors that the options need.
func (s *Source) reflectors(c *clients) (all []*cache.Reflector) {
	add := func(resource Resource, namespace string, optional bool, example runtime.Object, from *cache.ListWatch) {
		all = append(all, s.newStore(resource, namespace, optional).reflector(example, from))
	}
	core, discovery := c.core.RESTClient(), c.discovery.RESTClient()
	namespaces := slices.Compact(slices.Sorted(slices.Values(s.options.Namespaces)))
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	for _, namespace := range namespaces {
		for i, resource := range s.options.Imports {
			add(resource, namespace, i > 0, new(unstructured.Unstructured),
				c.listImports(resource, namespace, s.options.Labels))
		}
		if s.options.FallbackServices {
			add(Services, namespace, true, new(corev1.Service), list(core, "services", namespace, "", servicesWithIP))
		}
		if !s.options.NoEndpoints {
			add(EndpointSlices, namespace, false, new(discoveryv1.EndpointSlice),
				list(discovery, "endpointslices", namespace, withServiceName, ""))
		}
		if !s.options.NoEndpoints && slices.Contains(s.options.Imports, GKEServiceImports) {
			add(MirroredEndpointSlices, namespace, false, new(discoveryv1.EndpointSlice),
				list(discovery, "endpointslices", namespace, mirroredOnly, ""))
		}
	}
	if s.options.NamespaceLabels != "" {
		add(Namespaces, "", false, new(corev1.Namespace), list(core, "namespaces", "", s.options.NamespaceLabels, ""))
	}
	if s.options.Nodes {
		add(Nodes, "", true, new(corev1.Node), list(core, "nodes", "", "", ""))
	}
	return all
}

// reflector returns a reflector that keeps the store equal to the API server's objects.
func (s *store) reflector(example runtime.Object, from *cache.ListWatch) *cache.Reflector {
	// due is the timeout of the last watch, which starts when the API server accepts the watch. A reflector opens one
	// watch at a time.
	var due time.Time
	listWatch := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			due = time.Time{}
			list, err := from.ListWithContext(ctx, options)
			s.asked(err)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (apiwatch.Interface, error) {
			if options.SendInitialEvents == nil && !due.IsZero() && time.Until(due).Abs() > slack {
				return nil, errBroken
			}
			w, err := from.WatchWithContext(ctx, options)
			// Kubernetes before 1.32, and later versions without the feature gate WatchList, do not stream lists. The
			// reflector then lists instead, so this is not a failure.
			if options.SendInitialEvents == nil || !apierrors.IsInvalid(err) {
				s.asked(err)
			}
			switch {
			case err == nil && options.TimeoutSeconds != nil:
				due = time.Now().Add(time.Duration(*options.TimeoutSeconds) * time.Second)
			case apierrors.IsTooManyRequests(err) && !due.IsZero():
				due = time.Now() // do not list: that would load an overloaded API server even more
			}
			return w, err
		},
	}
	logger := logr.Discard() // report logs failures
	backoff := retry
	return cache.NewReflectorWithOptions(listWatch, example, s,
		cache.ReflectorOptions{Name: string(s.resource), Logger: &logger, Backoff: &backoff})
}
