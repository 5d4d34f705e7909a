// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	discoveryv1client "k8s.io/client-go/kubernetes/typed/discovery/v1"
	"k8s.io/client-go/rest"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/object"
)

// clients ask one API server.
type clients struct {
	discovery *discoveryv1client.DiscoveryV1Client
	core      *corev1client.CoreV1Client
	imports   map[Resource]*importClient
}

// importClient asks for the ServiceImports of one API group.
type importClient struct {
	// versions are the clients of the versions that may be served, the preferred first.
	versions []*rest.RESTClient
	// served is the number of the version that was served last.
	served atomic.Int32
}

// importVersions are the versions of the ServiceImport APIs, the preferred first. What DNS needs of them is the same in
// all: in both of mcs-api (v0.5.2), and in Google's, which is an older form of it.
var importVersions = map[Resource][]schema.GroupVersion{
	ServiceImports:    {{Group: GroupMCS, Version: "v1beta1"}, {Group: GroupMCS, Version: "v1alpha1"}},
	GKEServiceImports: {{Group: GroupGKE, Version: "v1"}},
}

func newClients(config *rest.Config) (*clients, error) {
	config = rest.CopyConfig(config)
	config.WarningHandler = rest.NoWarnings{}      // about deprecated versions, which are known
	config.DisableCompression = true               // as Kubernetes' own components do: it costs more than it saves
	config.QPS, config.Burst = 50, 3*maxNamespaces // a start is up to three requests for each namespace and resource
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("connecting to %s: %w", config.Host, err)
	}
	protobuf := rest.CopyConfig(config)
	protobuf.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	protobuf.ContentType = "application/vnd.kubernetes.protobuf"
	c := &clients{imports: make(map[Resource]*importClient)}
	if c.discovery, err = discoveryv1client.NewForConfigAndClient(protobuf, httpClient); err != nil {
		return nil, fmt.Errorf("connecting to %s for EndpointSlices: %w", config.Host, err)
	}
	if c.core, err = corev1client.NewForConfigAndClient(protobuf, httpClient); err != nil {
		return nil, fmt.Errorf("connecting to %s for Namespaces: %w", config.Host, err)
	}
	codecs := importCodecs()
	for resource, versions := range importVersions {
		c.imports[resource] = new(importClient)
		for _, version := range versions {
			of := rest.CopyConfig(config)
			of.APIPath = "/apis"
			of.GroupVersion = &version
			of.NegotiatedSerializer = codecs.WithoutConversion()
			client, err := rest.RESTClientForConfigAndClient(of, httpClient)
			if err != nil {
				return nil, fmt.Errorf("connecting to %s for ServiceImports %s: %w", config.Host, version, err)
			}
			c.imports[resource].versions = append(c.imports[resource].versions, client)
		}
	}
	return c, nil
}

// importCodecs read all versions of ServiceImport as one type.
func importCodecs() serializer.CodecFactory {
	scheme := runtime.NewScheme()
	for _, versions := range importVersions {
		for _, served := range versions {
			scheme.AddKnownTypeWithName(served.WithKind("ServiceImport"), new(importObject))
			scheme.AddKnownTypeWithName(served.WithKind("ServiceImportList"), new(importList))
			metav1.AddToGroupVersion(scheme, served)
		}
	}
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	return serializer.NewCodecFactory(scheme)
}

// eachVersion asks with the version that was served last, and with the others if that one is not served.
func eachVersion[T any](c *importClient, ask func(*rest.RESTClient) (T, error)) (T, error) {
	first := int(c.served.Load())
	answer, err := ask(c.versions[first])
	if !apierrors.IsNotFound(err) {
		return answer, err
	}
	for i, client := range c.versions {
		if i == first {
			continue
		}
		other, otherErr := ask(client)
		if !apierrors.IsNotFound(otherErr) {
			c.served.Store(int32(i))
			return other, otherErr
		}
	}
	return answer, err
}

func (c *importClient) list(labels, namespace string) lister {
	request := func(client *rest.RESTClient, options metav1.ListOptions) *rest.Request {
		options.LabelSelector = labels
		var timeout time.Duration
		if options.TimeoutSeconds != nil {
			timeout = time.Duration(*options.TimeoutSeconds) * time.Second
		}
		return client.Get().NamespaceIfScoped(namespace,
			namespace != metav1.NamespaceAll).Resource(string(ServiceImports)).
			VersionedParams(&options, metav1.ParameterCodec).Timeout(timeout)
	}
	return lister{
		list: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return eachVersion(c, func(client *rest.RESTClient) (runtime.Object, error) {
				result := request(client, options).Do(ctx)
				if err := result.Error(); err != nil {
					return nil, err
				}
				list := new(importList)
				if err := result.Into(list); err != nil {
					return nil, fmt.Errorf("%w: %w", ErrUndecodable, err)
				}
				return list, nil
			})
		},
		watch: func(ctx context.Context, options metav1.ListOptions) (apiwatch.Interface, error) {
			options.Watch = true
			return eachVersion(c, func(client *rest.RESTClient) (apiwatch.Interface, error) {
				return request(client, options).Watch(ctx)
			})
		},
	}
}

// Label selectors of EndpointSlices. None matches both.
const (
	withServiceName = mcsv1beta1.LabelServiceName
	mirroredOnly    = discoveryv1.LabelManagedBy + "=" + object.MirroredBy + ",!" + mcsv1beta1.LabelServiceName
)

// servicesWithIP is a field selector that leaves headless Services out: they have no address.
const servicesWithIP = "spec.clusterIP!=None"

// typedClient asks for the objects of one resource, in one namespace or in all.
type typedClient[List runtime.Object] interface {
	List(ctx context.Context, options metav1.ListOptions) (List, error)
	Watch(ctx context.Context, options metav1.ListOptions) (apiwatch.Interface, error)
}

// listerOf selects by labels and fields.
func listerOf[List runtime.Object](client typedClient[List], labels, fields string) lister {
	return lister{
		list: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.LabelSelector, options.FieldSelector = labels, fields
			return client.List(ctx, options)
		},
		watch: func(ctx context.Context, options metav1.ListOptions) (apiwatch.Interface, error) {
			options.LabelSelector, options.FieldSelector = labels, fields
			return client.Watch(ctx, options)
		},
	}
}
