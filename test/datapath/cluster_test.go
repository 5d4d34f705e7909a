// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"bytes"
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/clusterset-dns/clusterset-dns/test/controlplane"
	"github.com/clusterset-dns/clusterset-dns/test/datapath/network"
	"github.com/clusterset-dns/clusterset-dns/test/datapath/proxy"
)

const system = "clusterset-dns"

// cluster is a control plane with nodes that carry packets.
type cluster struct {
	*controlplane.Cluster
	kubernetes.Interface
	bed   *bed
	dns   string  // the ClusterIP of the cluster DNS
	nodes []*node // ordered by name
	// reached are the ranges at which other clusters reach the cluster.
	reached []netip.Prefix
	// uplink is the network to which the nodes are attached.
	uplink *network.Namespace
}

// node is a network namespace with a kube-proxy.
type node struct {
	*network.Namespace
	name      string
	addresses []netip.Addr
	pods      []netip.Prefix // the ranges of its pods
}

func newCluster(t testing.TB, b *bed, plane *controlplane.Cluster) *cluster {
	c := &cluster{Cluster: plane, Interface: plane.Client(), bed: b, reached: plane.Options().PodCIDRs, uplink: router}
	if b.networks {
		c.separate(t)
	}
	must(t, plane.Install(t.Context()))
	c.startNodes(t)
	c.startDNS(t)
	c.startControllers(t)
	return c
}

// credential writes a kubeconfig with the rights of a service account, for programs on nodes and in pods, and returns its path.
func (c *cluster) credential(t testing.TB, namespace, account string) []byte {
	text, err := c.ServiceAccountKubeconfig(t.Context(), namespace, account)
	must(t, err)
	return bytes.Replace(text, []byte("server: https://127.0.0.1:"),
		[]byte("tls-server-name: kubernetes\n    server: https://"+apiAddress.String()+":"), 1)
}

func (c *cluster) writeCredential(t testing.TB, namespace, account string) (file string) {
	return c.writeFile(t, account+".kubeconfig", string(c.credential(t, namespace, account)))
}

// writeFile writes a file into the folder of the cluster and returns its path.
func (c *cluster) writeFile(t testing.TB, name, text string) (file string) {
	file = filepath.Join(c.Directory(), name)
	must(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

// startNodes builds the network of the nodes, and starts their kube-proxies.
func (c *cluster) startNodes(t testing.TB) {
	c.apply(t, proxy.Rights)
	credential := c.writeCredential(t, metav1.NamespaceSystem, "kube-proxy")

	nodes, err := c.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	must(t, err)
	for i := range nodes.Items {
		object := &nodes.Items[i]
		n := &node{name: object.Name}
		for _, address := range object.Status.Addresses {
			if address.Type == corev1.NodeInternalIP {
				n.addresses = append(n.addresses, netip.MustParseAddr(address.Address))
			}
		}
		for _, text := range object.Spec.PodCIDRs {
			n.pods = append(n.pods, netip.MustParsePrefix(text))
		}
		n.Namespace = c.attach(t, c.uplink, n.addresses, n.pods...)
		// A packet that arrives before the rules of its Service must be refused here. Otherwise connection tracking
		// would remember the connection without a destination for two minutes, and apply it to a later connection with
		// the same port: kube-proxy v1.36.3 deletes only such flows of UDP.
		must(t, n.Refuse(c.Options().ServiceCIDRs...))
		if c.bed.networks {
			masquerade(t, n)
		}
		proxy.Start(t, c.Cluster, n.name, n.Namespace, credential, c.bed.mode)
		c.nodes = append(c.nodes, n)
	}
	for _, n := range c.nodes {
		c.tellZone(t, n)
	}
}

// tellZone removes the zone of a node and sets it again after the node's kube-proxy has started. kube-proxy v1.36.3
// gets the zone from an informer that runs before the proxier is registered with it (NodeTopologyConfig in
// pkg/proxy/config): if the node arrives in between, hints have no effect until the label changes.
func (c *cluster) tellZone(t testing.TB, n *node) {
	eventually(t, "kube-proxy of "+n.name, func(ctx context.Context) error {
		events, err := c.EventsV1().Events(metav1.NamespaceAll).List(ctx,
			metav1.ListOptions{FieldSelector: "reason=Starting,reportingController=kube-proxy"})
		if err != nil {
			return err
		}
		for i := range events.Items {
			if events.Items[i].Regarding.Name == n.name {
				return nil
			}
		}
		return fmt.Errorf("it has not said that it starts, among %d Events", len(events.Items))
	})
	node, err := c.CoreV1().Nodes().Get(t.Context(), n.name, metav1.GetOptions{})
	must(t, err)
	for _, zone := range []string{"null", strconv.Quote(node.Labels[corev1.LabelTopologyZone])} {
		c.patch(t, "nodes.v1.", "", n.name, fmt.Sprintf(`{"metadata":{"labels":{%q:%s}}}`, corev1.LabelTopologyZone, zone))
	}
}

// attach creates a namespace and attaches it to another. It is removed with the test.
func (c *cluster) attach(t testing.TB, to *network.Namespace, addresses []netip.Addr,
	ranges ...netip.Prefix,
) *network.Namespace {
	made, err := network.New()
	must(t, err)
	t.Cleanup(func() { must(t, made.Close()) })
	must(t, to.Attach(made, addresses, ranges...))
	return made
}

// corefile is the Corefile of a cluster's CoreDNS, which forwards nothing. A file has the names of load balancers.
const corefile = `.:53 {
    errors
    hosts %[2]s lb.example {
        reload 200ms
        ttl 1
    }
    multicluster clusterset.local {
        kubeconfig %[1]s
    }
    kubernetes cluster.local in-addr.arpa ip6.arpa {
        kubeconfig %[1]s
    }
    loadbalance
}
`

// startDNS starts a CoreDNS in a pod, behind the Service kube-dns.
func (c *cluster) startDNS(t testing.TB) {
	c.dns = c.ServiceIP(10)
	credential := c.writeCredential(t, metav1.NamespaceSystem, "clusterset-coredns")
	p := c.pod(t, podSpec{namespace: metav1.NamespaceSystem, name: "coredns", app: "coredns"})
	p.run(t, c.bed.program("coredns"), "-conf",
		c.writeFile(t, "Corefile", fmt.Sprintf(corefile, credential, filepath.Join(c.Directory(), "hosts"))))
	c.apply(t, `{apiVersion: v1, kind: Service, metadata: {name: kube-dns, namespace: kube-system}, spec: {
  clusterIP: `+c.dns+`, selector: {app: coredns},
  ports: [{name: dns, protocol: UDP, port: 53}, {name: dns-tcp, protocol: TCP, port: 53}]}}`)
}

// apply writes objects to the cluster.
func (c *cluster) apply(t testing.TB, objects string) {
	eventually(t, "apply objects", func(ctx context.Context) error {
		return c.Apply(ctx, []byte(objects))
	})
}

// patch applies a merge patch to an object of a RESOURCE.VERSION.GROUP.
func (c *cluster) patch(t testing.TB, resource, namespace, name, text string, subresources ...string) {
	what, _ := schema.ParseResourceArg(resource)
	_, err := c.Dynamic().Resource(*what).Namespace(namespace).Patch(t.Context(), name, types.MergePatchType, []byte(text),
		metav1.PatchOptions{}, subresources...)
	must(t, err)
}

// startControllers starts a replica of the controller in a pod on each node.
func (c *cluster) startControllers(t testing.TB) {
	c.offerTargets(t)
	credential := c.writeCredential(t, system, "clusterset-controller")
	for node := range c.nodes {
		p := c.pod(t, podSpec{
			namespace: system, name: fmt.Sprintf("clusterset-controller-%d", node), node: node, app: "clusterset-controller",
		})
		flags := []string{
			"--cluster-id=" + c.Name(), "--kubeconfig=" + credential, "--namespace=" + system,
			fmt.Sprintf("--probe-address=:%d", probePort), "--stale-after=20s", // the shortest allowed value
		}
		if c.bed.networks {
			flags = append(flags, "--expose=NodePort", "--network="+c.Name())
		}
		p.run(t, c.bed.program("clusterset-controller"), flags...)
	}
}
