// SPDX-License-Identifier: Apache-2.0

// Package clusterset runs the project's programs next to a control plane, as local processes.
package clusterset

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/mcs-api/config/crd"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/process"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/programs"
)

// Namespace is the namespace of the controller, the Secrets of its members, and its heartbeat.
const Namespace = member.DefaultNamespace

// A Cluster is a control plane next to which the programs run, such as a *controlplane.Cluster.
type Cluster interface {
	Name() string
	// Directory is the directory of its files.
	Directory() string
	// Client and Dynamic have all rights.
	Client() kubernetes.Interface
	Dynamic() dynamic.Interface
	// ServiceAccountKubeconfig returns a kubeconfig with the rights of a service account.
	ServiceAccountKubeconfig(ctx context.Context, namespace, name string) ([]byte, error)
}

// WriteCredential writes a kubeconfig for a service account into the cluster's directory, and returns its path. The API
// server must be available.
func WriteCredential(ctx context.Context, plane Cluster, namespace, account string) (string, error) {
	kubeconfig, err := plane.ServiceAccountKubeconfig(ctx, namespace, account)
	if err != nil {
		return "", err
	}
	path := filepath.Join(plane.Directory(), account+".kubeconfig")
	if err := os.WriteFile(path, kubeconfig, 0o600); err != nil {
		return "", fmt.Errorf("write the credential of %s: %w", account, err)
	}
	return path, nil
}

// Install applies the RBAC objects of both programs from deploy/ of the checkout.
func Install(ctx context.Context, plane Cluster) error {
	root, err := programs.Checkout()
	if err != nil {
		return err
	}
	for _, manifest := range []string{"rbac.yaml", "coredns-rbac.yaml"} {
		text, err := os.ReadFile(filepath.Join(root, "deploy", manifest))
		if err != nil {
			return fmt.Errorf("read the rights: %w", err)
		}
		if err := Apply(ctx, plane, text); err != nil {
			return err
		}
	}
	return nil
}

// SecretOf returns the name of the Secret that Join creates for a member.
func SecretOf(id string) string { return "member-" + id }

// Join makes a cluster a member, which the controller reads with the kubeconfig.
func Join(ctx context.Context, plane Cluster, id string, kubeconfig []byte) error {
	_, err := plane.Client().CoreV1().Secrets(Namespace).Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Name: SecretOf(id), Labels: map[string]string{member.ClusterLabel: id},
			Annotations: map[string]string{member.CIDRsAnnotation: "0.0.0.0/0,::/0"}, // without ranges nothing is probed
		},
		Data: map[string][]byte{member.KubeconfigKey: kubeconfig},
	}, metav1.CreateOptions{})
	return err
}

// A Program is a running process. The caller must stop it.
type Program struct {
	*process.Process
	// Address is the address on which it listens: CoreDNS for queries, the controller for metrics and health.
	Address string
}

// StartDNS starts the CoreDNS at path for the zones of the clusterset and of the cluster. It does not wait until
// CoreDNS answers, and the API server need not be available.
func StartDNS(plane Cluster, path, credential string) (*Program, error) {
	return StartCorefile(plane, path, fmt.Sprintf(`.:PORT {
    bind 127.0.0.1
    errors
    multicluster clusterset.local {
        kubeconfig %[1]s
    }
    kubernetes cluster.local {
        kubeconfig %[1]s
    }
}
`, credential))
}

// StartCorefile starts the CoreDNS at path with a Corefile, in which it replaces PORT by a free port of 127.0.0.1. It
// does not wait until CoreDNS answers.
func StartCorefile(plane Cluster, path, corefile string) (*Program, error) {
	address, err := process.FreePort()
	if err != nil {
		return nil, err
	}
	number := strconv.Itoa(int(address.Port()))
	file := filepath.Join(plane.Directory(), "Corefile-"+number)
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(corefile, "PORT", number)), 0o600); err != nil {
		return nil, fmt.Errorf("write the Corefile: %w", err)
	}
	return start(plane, address.String(), path, "-conf", file)
}

// StartController starts the controller at path. flags are added to the flags for its identity, credential and address.
// It does not wait until the controller is ready, and the API server need not be available.
func StartController(plane Cluster, path, credential string, flags ...string) (*Program, error) {
	address, err := process.FreePort()
	if err != nil {
		return nil, err
	}
	return start(plane, address.String(), path, append([]string{
		"--cluster-id", plane.Name(), "--kubeconfig", credential, "--namespace", Namespace, "--bind-address",
		address.String(),
	}, flags...)...)
}

func start(plane Cluster, address, path string, args ...string) (*Program, error) {
	name := filepath.Base(path)
	started, err := process.Start(process.Spec{
		Name: name + " of " + plane.Name(), Path: path, Args: args,
		LogFile: filepath.Join(plane.Directory(), name+".log"),
	})
	if err != nil {
		return nil, err
	}
	return &Program{Process: started, Address: address}, nil
}

// Get returns the response of a program at a path.
func (p *Program) Get(ctx context.Context, path string) (status int, text string, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.Address+path, http.NoBody)
	if err != nil {
		return 0, "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	return response.StatusCode, string(content), err
}

// Ready reports whether a controller is ready. The error is set if the process has ended.
func (p *Program) Ready(ctx context.Context) (bool, error) {
	status, _, err := p.Get(ctx, "/readyz")
	var network *net.OpError
	if errors.As(err, &network) {
		return false, p.Err() // it does not listen yet
	}
	return status == http.StatusOK, err
}

// Apply writes the objects of a YAML stream to a cluster, like kubectl apply --server-side.
func Apply(ctx context.Context, plane Cluster, stream []byte) error {
	objects, err := Objects(stream)
	if err != nil {
		return err
	}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(plane.Client().Discovery()))
	for _, object := range objects {
		kind := object.GroupVersionKind()
		mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if err != nil {
			return fmt.Errorf("apply %s %s: %w", kind.Kind, object.GetName(), err)
		}
		var client dynamic.ResourceInterface = plane.Dynamic().Resource(mapping.Resource)
		if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
			client = plane.Dynamic().Resource(mapping.Resource).Namespace(cmp.Or(object.GetNamespace(), metav1.NamespaceDefault))
		}
		if _, err := client.Apply(ctx, object.GetName(), object,
			metav1.ApplyOptions{FieldManager: "test", Force: true}); err != nil {
			return fmt.Errorf("apply %s %s to %s: %w", kind.Kind, object.GetName(), plane.Name(), err)
		}
	}
	return nil
}

// CRDs has the CustomResourceDefinitions of the Multi-Cluster Services API.
var CRDs = string(crd.ServiceExportCRD) + "\n---\n" + string(crd.ServiceImportCRD)

// CRD returns a CustomResourceDefinition with upstream's names, but without its schema.
func CRD(group, version, kind string) string {
	return fmt.Sprintf(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: %[1]ss.%[2]s
  annotations: {api-approved.kubernetes.io: "https://github.com/kubernetes-sigs"}
spec:
  group: %[2]s
  scope: Namespaced
  names: {kind: %[3]s, plural: %[1]ss}
  versions:
  - name: %[4]s
    served: true
    storage: true
    subresources: {status: {}}
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
---
`, strings.ToLower(kind), group, kind, version)
}

// Imported returns the endpoints of an imported service, in the form of Endpoints.
func Imported(ctx context.Context, client kubernetes.Interface, namespace, service string) ([]string, error) {
	list, err := client.DiscoveryV1().EndpointSlices(namespace).List(ctx, metav1.ListOptions{LabelSelector: export.LabelService + "=" + service})
	if err != nil {
		return nil, err
	}
	return Endpoints(list.Items), nil
}

// Endpoints returns the endpoints of imported slices, sorted, as CLUSTER/ADDRESS with a mark: ~ means not ready, but
// serving and terminating; - means not used by any client.
func Endpoints(imported []discoveryv1.EndpointSlice) (texts []string) {
	for i := range imported {
		for _, each := range imported[i].Endpoints {
			texts = append(texts, imported[i].Labels[export.LabelSourceCluster]+"/"+each.Addresses[0]+mark(each.Conditions))
		}
	}
	slices.Sort(texts)
	return texts
}

func mark(conditions discoveryv1.EndpointConditions) string {
	is := func(value *bool) bool { return value != nil && *value }
	ready, serving, terminating := is(conditions.Ready), is(conditions.Serving), is(conditions.Terminating)
	switch {
	case ready && serving && !terminating:
		return ""
	case !ready && serving && terminating:
		return "~"
	case !ready && !serving && !terminating:
		return "-"
	}
	return fmt.Sprintf("(ready %v serving %v terminating %v)", ready, serving, terminating)
}

// Objects parses a YAML stream.
func Objects(stream []byte) (objects []*unstructured.Unstructured, err error) {
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(stream), 4096)
	for {
		object := &unstructured.Unstructured{}
		if err := decoder.Decode(&object.Object); errors.Is(err, io.EOF) {
			return objects, nil
		} else if err != nil {
			return nil, fmt.Errorf("read the objects to apply: %w", err)
		}
		if len(object.Object) > 0 {
			objects = append(objects, object)
		}
	}
}
