// SPDX-License-Identifier: Apache-2.0

// Package clusterset has what control planes have in common, real ones and models, and runs the project's programs next
// to them, as local processes.
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
	"net/netip"
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
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/mcs-api/config/crd"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/process"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/programs"
	"github.com/clusterset-dns/clusterset-dns/test/pki"
)

// Namespace is the namespace of the controller, the Secrets of its members, and its heartbeat.
const Namespace = member.DefaultNamespace

// A Cluster is a control plane. Its methods may be called from any goroutine.
type Cluster struct {
	name, directory string
	config          *rest.Config
	client          kubernetes.Interface
	dynamic         dynamic.Interface
}

// New returns the cluster of a configuration with all rights and inline data, with a directory for its files.
func New(name, directory string, config *rest.Config) (*Cluster, error) {
	client, err1 := kubernetes.NewForConfig(config)
	dynamicClient, err2 := dynamic.NewForConfig(config)
	return &Cluster{name, directory, config, client, dynamicClient}, errors.Join(err1, err2)
}

// Name returns the cluster's name.
func (c *Cluster) Name() string { return c.name }

// Directory returns the directory of the files of the cluster and of the programs next to it.
func (c *Cluster) Directory() string { return c.directory }

// Config returns a client configuration with all rights. The caller may change it.
func (c *Cluster) Config() *rest.Config { return rest.CopyConfig(c.config) }

// Client returns a client with all rights.
func (c *Cluster) Client() kubernetes.Interface { return c.client }

// Dynamic returns a dynamic client with all rights.
func (c *Cluster) Dynamic() dynamic.Interface { return c.dynamic }

// Kubeconfig returns a kubeconfig with a token. All names in it are the cluster's name.
func (c *Cluster) Kubeconfig(token string) ([]byte, error) {
	return pki.Kubeconfig(c.name, c.config.Host, c.config.CAData, token)
}

// ServiceAccountKubeconfig returns a kubeconfig with the rights of a service account, which must exist. Its token, from
// the TokenRequest API, is valid for 24 hours. The API server must be available.
func (c *Cluster) ServiceAccountKubeconfig(ctx context.Context, namespace, name string) ([]byte, error) {
	token, err := pki.Token(ctx, c.client, namespace, name, pki.Lifetime)
	if err != nil {
		return nil, fmt.Errorf("cluster %s: %w", c.name, err)
	}
	return c.Kubeconfig(token)
}

// WriteCredential writes this kubeconfig into the cluster's directory, and returns its path.
func (c *Cluster) WriteCredential(ctx context.Context, namespace, account string) (string, error) {
	kubeconfig, err := c.ServiceAccountKubeconfig(ctx, namespace, account)
	if err != nil {
		return "", err
	}
	path := filepath.Join(c.directory, account+".kubeconfig")
	if err := os.WriteFile(path, kubeconfig, 0o600); err != nil {
		return "", fmt.Errorf("write the credential of %s: %w", account, err)
	}
	return path, nil
}

// Install applies the RBAC objects of both programs from deploy/ of the checkout.
func (c *Cluster) Install(ctx context.Context) error {
	root, err := programs.Checkout()
	if err != nil {
		return err
	}
	for _, manifest := range []string{"rbac.yaml", "coredns-rbac.yaml"} {
		text, err := os.ReadFile(filepath.Join(root, "deploy", manifest))
		if err != nil {
			return fmt.Errorf("read the rights: %w", err)
		}
		if err := c.Apply(ctx, text); err != nil {
			return err
		}
	}
	return nil
}

// SecretOf returns the name of the Secret that Join creates for a member.
func SecretOf(id string) string { return "member-" + id }

// Join makes a cluster a member, which the controller reads with the kubeconfig.
func (c *Cluster) Join(ctx context.Context, id string, kubeconfig []byte) error {
	_, err := c.client.CoreV1().Secrets(Namespace).Create(ctx, &corev1.Secret{
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

// StartDNS starts the CoreDNS at path for the zones of the clusterset and of the cluster, with the rights of its
// account. It does not wait until CoreDNS answers.
func (c *Cluster) StartDNS(ctx context.Context, path string) (*Program, error) {
	credential, err := c.WriteCredential(ctx, metav1.NamespaceSystem, "clusterset-coredns")
	if err != nil {
		return nil, err
	}
	return c.StartCorefile(path, fmt.Sprintf(`.:PORT {
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
func (c *Cluster) StartCorefile(path, corefile string) (*Program, error) {
	address, err := process.FreePort()
	if err != nil {
		return nil, err
	}
	number := strconv.Itoa(int(address.Port()))
	file := filepath.Join(c.directory, "Corefile-"+number)
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(corefile, "PORT", number)), 0o600); err != nil {
		return nil, fmt.Errorf("write the Corefile: %w", err)
	}
	return c.start(address, path, "-conf", file)
}

// StartController starts the controller at path, with the rights of its account. flags are added to the flags for its
// identity, credential and address. It does not wait until the controller is ready.
func (c *Cluster) StartController(ctx context.Context, path string, flags ...string) (*Program, error) {
	credential, err := c.WriteCredential(ctx, Namespace, "clusterset-controller")
	if err != nil {
		return nil, err
	}
	address, err := process.FreePort()
	if err != nil {
		return nil, err
	}
	return c.start(address, path, append([]string{
		"--cluster-id", c.name, "--kubeconfig", credential, "--namespace", Namespace, "--bind-address", address.String(),
	}, flags...)...)
}

func (c *Cluster) start(address netip.AddrPort, path string, args ...string) (*Program, error) {
	name := filepath.Base(path)
	started, err := process.Start(process.Spec{
		Name: name + " of " + c.name, Path: path, Args: args, LogFile: filepath.Join(c.directory, name+".log"),
	})
	if err != nil {
		return nil, err
	}
	return &Program{Process: started, Address: address.String()}, nil
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
func (c *Cluster) Apply(ctx context.Context, stream []byte) error {
	objects, err := Objects(stream)
	if err != nil {
		return err
	}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(c.client.Discovery()))
	for _, object := range objects {
		kind := object.GroupVersionKind()
		mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if err != nil {
			return fmt.Errorf("apply %s %s: %w", kind.Kind, object.GetName(), err)
		}
		var client dynamic.ResourceInterface = c.dynamic.Resource(mapping.Resource)
		if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
			client = c.dynamic.Resource(mapping.Resource).Namespace(cmp.Or(object.GetNamespace(), metav1.NamespaceDefault))
		}
		if _, err := client.Apply(ctx, object.GetName(), object,
			metav1.ApplyOptions{FieldManager: "test", Force: true}); err != nil {
			return fmt.Errorf("apply %s %s to %s: %w", kind.Kind, object.GetName(), c.name, err)
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
