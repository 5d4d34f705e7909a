// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/controlplanetest"
	"github.com/clusterset-dns/clusterset-dns/test/pki"
	"github.com/clusterset-dns/clusterset-dns/test/scenario"
	"github.com/clusterset-dns/clusterset-dns/test/sim/network"
)

const system = member.DefaultNamespace

// rate is the speed of the controllers' clocks, relative to real time.
const rate = 6

// A realBed provides real control planes for scenarios. Controllers reach the API servers of other clusters over a
// simulated network, to and from which real connections are relayed.
type realBed struct {
	*network.Network
	planes map[string]*controlplane.Cluster
	ways   map[[2]string]string // address at which a reader reaches a source
}

// prepared are the control planes that prepare has set up.
var prepared sync.Map

// prepare applies the rights and creates two nodes in two zones, once per control plane. No kubelet is simulated,
// because no test here has pods.
func prepare(t *testing.T, plane *controlplane.Cluster) *controlplane.Cluster {
	if _, done := prepared.LoadOrStore(plane, true); done {
		return plane
	}
	text, err := os.ReadFile("../../deploy/rbac.yaml")
	must(t, err)
	for i, zone := range "ab" {
		text = fmt.Appendf(text, "\n---\napiVersion: v1\nkind: Node\nmetadata: {name: %[1]s-%[2]d, labels: {topology.kubernetes.io/zone: %[1]s-%[3]c}}", plane.Name(), i, zone)
	}
	must(t, plane.Apply(t.Context(), text))
	return plane
}

// one returns a control plane that only this test uses.
func one(t *testing.T) *controlplane.Cluster {
	return prepare(t, take(t, 1)[0])
}

// run runs a scenario on the bed.
func (b *realBed) run(t *testing.T, s scenario.Scenario) { s.On(scenario.NewSet(t, b, s.Clusters)) }

func (b *realBed) Platforms(t *testing.T, names []string) (platforms []scenario.Platform) {
	free := take(t, (len(names)+1)/2) // every second cluster is dual-stack
	b.Network, b.planes, b.ways = network.New(), map[string]*controlplane.Cluster{}, map[[2]string]string{}
	namespace := fmt.Sprintf("scenario-%x", time.Now().UnixNano())
	for i, name := range names {
		plane := prepare(t, free[i])
		b.planes[name] = plane
		server, err := b.Listen(name)
		must(t, err)
		carry(t, server, func() (net.Conn, error) { return net.Dial("tcp", strings.TrimPrefix(plane.URL(), "https://")) })
		controlplanetest.Eventually(t, "nothing of other scenarios in "+plane.Name(),
			func(ctx context.Context) error { return nothingEnds(ctx, plane) })
		kubeconfig, err := plane.ServiceAccountKubeconfig(t.Context(), system, "clusterset-controller")
		must(t, err)
		config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
		must(t, err)
		platforms = append(platforms, scenario.Platform{
			Admin: plane.Config(), Controller: config, DNS: plane.Config(), Namespace: namespace,
			Credential: func(reader string) []byte {
				return credential(t, plane, "https://"+b.way(t, reader, name), plane.Config().CAData)
			},
		})
	}
	return platforms
}

// nothingEnds returns an error while a namespace is terminating, with its remaining content.
func nothingEnds(ctx context.Context, plane *controlplane.Cluster) error {
	namespaces, err := plane.Client().CoreV1().Namespaces().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range namespaces.Items {
		if each := &namespaces.Items[i]; each.DeletionTimestamp != nil {
			return fmt.Errorf("namespace %s is still being deleted", each.Name)
		}
	}
	return nil
}

func (*realBed) Rate() int { return rate }

// way returns the address at which a reader reaches a source.
func (b *realBed) way(t *testing.T, reader, source string) string {
	key := [2]string{reader, source}
	if b.ways[key] == "" {
		listener, err := net.Listen("tcp4", "127.0.0.1:0")
		must(t, err)
		b.ways[key] = listener.Addr().String()
		carry(t, listener, func() (net.Conn, error) { return b.Dialer(reader)(t.Context(), "tcp", source+":443") })
	}
	return b.ways[key]
}

// carry relays each connection of a listener to a dialed connection, until the test ends.
func carry(t *testing.T, listener net.Listener, dial func() (net.Conn, error)) {
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			from, err := listener.Accept()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err != nil {
				continue // out of descriptors, or the client has gone: temporary
			}
			go func() {
				defer from.Close()
				to, err := dial()
				if err != nil {
					return // an accepted connection cannot be refused any more, so it is closed
				}
				defer to.Close()
				go func() {
					defer to.Close()
					_, _ = io.Copy(to, from)
				}()
				_, _ = io.Copy(from, to)
			}()
		}
	}()
}

// credential returns a kubeconfig with which a member is read at a URL.
func credential(t *testing.T, plane *controlplane.Cluster, url string, authority []byte) []byte {
	token, err := pki.Token(t.Context(), plane.Client(), system, "clusterset-member", pki.Lifetime)
	must(t, err)
	kubeconfig, err := pki.Kubeconfig(plane.Name(), url, authority, token)
	must(t, err)
	return kubeconfig
}

var must = controlplanetest.Must
