// SPDX-License-Identifier: Apache-2.0

package dns

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/miekg/dns"
	"github.com/prometheus/client_golang/prometheus"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
	mcs "sigs.k8s.io/mcs-api/pkg/client/clientset/versioned"

	"github.com/clusterset-dns/clusterset-dns/controller"
	"github.com/clusterset-dns/clusterset-dns/test/clusterset"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/controlplanetest"
)

// demoCluster is one of the two clusters of the demo.
type demoCluster struct {
	*controlplane.Cluster
	mcs mcs.Interface
	dns *server
	// serving is the slice that Kubernetes made for the Service.
	serving *discoveryv1.EndpointSlice
}

// TestTheDemoOfTheAPI does what docs/use/mcs-api-demo.md says, with its objects.
func TestTheDemoOfTheAPI(t *testing.T) {
	document, err := os.ReadFile(filepath.Join("..", "..", "docs", "use", "mcs-api-demo.md"))
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllSubmatch(document, -1)
	if len(blocks) != 2 {
		t.Fatalf("the document has %d blocks of YAML, want 2", len(blocks))
	}
	var clusters []*demoCluster
	for _, plane := range controlplanetest.Start(t, controlplane.Options{Name: "c1"}, controlplane.Options{Name: "c2"}) {
		clusters = append(clusters, newDemoCluster(t, plane))
	}

	// 1: the service in each cluster.
	for _, c := range clusters {
		c.apply(t, blocks[0][1])
	}
	var addresses []string
	for _, c := range clusters {
		c.serving = c.slice(t)
		addresses = append(addresses, c.serving.Endpoints[0].Addresses...)
	}
	slices.Sort(addresses)
	// 2: copies of both clusters' slices in both, and 3: the import.
	for _, c := range clusters {
		for _, from := range clusters {
			imported := from.serving.DeepCopy()
			imported.ObjectMeta = metav1.ObjectMeta{
				Name: "imported-" + from.serving.Name, Namespace: "demo", Labels: map[string]string{mcsv1beta1.LabelServiceName: "serve"},
			}
			if _, err := c.Client().DiscoveryV1().EndpointSlices("demo").Create(t.Context(), imported, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		c.apply(t, blocks[1][1])
	}
	for _, c := range clusters {
		// 4: the derived Service, its IP and its endpoints.
		ip, derived := c.imported(t)
		if !strings.Contains(string(document), derived) {
			t.Errorf("the document does not name the derived Service %s", derived)
		}
		wait(t, func() error {
			got, err := c.behind(t.Context(), derived)
			if err == nil && !slices.Equal(got, addresses) {
				err = fmt.Errorf("behind %s are %v, want %v", derived, got, addresses)
			}
			return err
		})
		// 5: the name.
		c.dns.until("serve.demo.svc.clusterset.local.", dns.TypeA, ip)
		c.dns.expect("serve.demo.svc.clusterset.local.", dns.TypeSRV, "0 100 80 serve.demo.svc.clusterset.local.")
	}
	// 6: and back.
	for _, c := range clusters {
		_, derived := c.imported(t)
		if err := c.mcs.MulticlusterV1beta1().ServiceImports("demo").Delete(t.Context(), "serve", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		c.dns.until("serve.demo.svc.clusterset.local.", dns.TypeA, "NXDOMAIN")
		wait(t, func() error {
			_, err := c.Client().CoreV1().Services("demo").Get(t.Context(), derived, metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				return nil
			}
			return errors.Join(fmt.Errorf("the derived Service %s is there", derived), err)
		})
		for _, from := range clusters {
			if _, err := c.Client().DiscoveryV1().EndpointSlices("demo").Get(t.Context(), "imported-"+from.serving.Name, metav1.GetOptions{}); err != nil {
				t.Error(err)
			}
		}
	}
}

// newDemoCluster starts a controller and a CoreDNS beside a control plane.
func newDemoCluster(t *testing.T, plane *controlplane.Cluster) *demoCluster {
	t.Helper()
	c := &demoCluster{Cluster: plane}
	var err error
	if c.mcs, err = mcs.NewForConfig(plane.Config()); err != nil {
		t.Fatal(err)
	}
	rights, err := os.ReadFile(filepath.Join("..", "..", "deploy", "rbac.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	c.apply(t, rights)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- controller.Run(ctx, controller.Options{
			Config: plane.Config(), Cluster: plane.Name(), Registry: prometheus.NewRegistry(), HandMadeImports: true,
		})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the controller of %s ended with: %v", plane.Name(), err)
		}
	})
	c.dns = serve(t, corefile(admin(t, plane), ""))
	return c
}

func (c *demoCluster) apply(t *testing.T, text []byte) {
	t.Helper()
	if err := clusterset.Apply(t.Context(), c.Cluster, text); err != nil {
		t.Fatal(err)
	}
}

// slice waits for the slice of the Service to have a ready endpoint.
func (c *demoCluster) slice(t *testing.T) (found *discoveryv1.EndpointSlice) {
	t.Helper()
	wait(t, func() error {
		list, err := c.Client().DiscoveryV1().EndpointSlices("demo").List(t.Context(), metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=serve"})
		if err != nil {
			return err
		}
		for i := range list.Items {
			found = &list.Items[i]
			if len(found.Endpoints) == 1 && *found.Endpoints[0].Conditions.Ready {
				return nil
			}
		}
		return fmt.Errorf("no ready endpoint in %s", c.Name())
	})
	return found
}

// imported waits for the import to have an IP, and returns that and the derived Service.
func (c *demoCluster) imported(t *testing.T) (ip, derived string) {
	t.Helper()
	wait(t, func() error {
		imported, err := c.mcs.MulticlusterV1beta1().ServiceImports("demo").Get(t.Context(), "serve", metav1.GetOptions{})
		if err != nil {
			return err
		}
		derived = imported.Annotations["multicluster.kubernetes.io/derived-service"]
		if len(imported.Spec.IPs) != 1 || derived == "" {
			return fmt.Errorf("the import of %s has the IPs %v and the Service %q", c.Name(), imported.Spec.IPs, derived)
		}
		ip = imported.Spec.IPs[0]
		return nil
	})
	return ip, derived
}

// behind are the addresses in the slices of a Service, sorted.
func (c *demoCluster) behind(ctx context.Context, service string) ([]string, error) {
	list, err := c.Client().DiscoveryV1().EndpointSlices("demo").List(ctx, metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=" + service})
	if err != nil {
		return nil, err
	}
	var addresses []string
	for _, slice := range list.Items {
		for _, endpoint := range slice.Endpoints {
			addresses = append(addresses, endpoint.Addresses...)
		}
	}
	slices.Sort(addresses)
	return addresses, nil
}
