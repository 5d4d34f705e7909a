// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/test/clusterset"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/controlplanetest"
	"github.com/clusterset-dns/clusterset-dns/test/scenario"
	"github.com/clusterset-dns/clusterset-dns/test/sim/network"
)

const (
	system     = member.DefaultNamespace
	memberName = "clusterset-member"
)

// rate is how much faster than the real time the controllers' clocks are.
const rate = 6

// A realBed is control planes for a scenario.
type realBed struct {
	planes map[string]*controlplane.Cluster
}

// prepared are the control planes that have the rights and the nodes.
var prepared sync.Map

// prepare gives a control plane the rights and two nodes in two zones, once.
// Nobody plays the nodes: no test here has pods.
func prepare(t *testing.T, plane *controlplane.Cluster) *controlplane.Cluster {
	t.Helper()
	if _, done := prepared.LoadOrStore(plane, true); done {
		return plane
	}
	text, err := os.ReadFile("../../deploy/rbac.yaml")
	must(t, err)
	for i, zone := range "ab" {
		text = fmt.Appendf(text, "\n---\napiVersion: v1\nkind: Node\nmetadata: {name: %[1]s-%[2]d, labels: {topology.kubernetes.io/zone: %[1]s-%[3]c}}", plane.Name(), i, zone)
	}
	must(t, clusterset.Apply(t.Context(), plane, text))
	return plane
}

// one is a control plane that the test has for itself.
func one(t *testing.T) *controlplane.Cluster {
	t.Helper()
	return prepare(t, take(t, 1)[0])
}

func (b *realBed) Platforms(t *testing.T, names []string) (platforms []scenario.Platform) {
	t.Helper()
	free := take(t, (len(names)+1)/2) // every second one has two families
	b.planes = map[string]*controlplane.Cluster{}
	namespace := fmt.Sprintf("scenario-%x", time.Now().UnixNano())
	for i, name := range names {
		plane := prepare(t, free[i])
		b.planes[name] = plane
		controlplanetest.Eventually(t, "nothing of other scenarios in "+plane.Name(),
			func(ctx context.Context) error { return nothingEnds(ctx, plane) })
		kubeconfig, err := plane.ServiceAccountKubeconfig(t.Context(), system, "clusterset-controller")
		must(t, err)
		config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
		must(t, err)
		platforms = append(platforms, scenario.Platform{
			Admin: plane.Config(), Controller: config, Namespace: namespace,
			Credential: func(reader string) []byte {
				text, err := b.remote(reader, name).ServiceAccountKubeconfig(t.Context(), system, memberName)
				must(t, err)
				return text
			},
		})
	}
	return platforms
}

// nothingEnds fails while a namespace is being deleted, with what is in it.
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

func (*realBed) Pass(d time.Duration) { <-time.After(d / rate) }

func (*realBed) Rate() int { return rate }

func (b *realBed) remote(reader, source string) *controlplane.Remote {
	remote, err := b.planes[source].Remote(reader)
	if err != nil {
		panic(err) // the control plane has stopped
	}
	return remote
}

func (b *realBed) Cut(reader, source string, direction network.Direction) {
	b.remote(reader, source).CutOff(direction)
}

func (b *realBed) Restore(reader, source string) { b.remote(reader, source).Reconnect() }

func (b *realBed) Reset(reader, source string) { b.remote(reader, source).Reset() }

var must = controlplanetest.Must
