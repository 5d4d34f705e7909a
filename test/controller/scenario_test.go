// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterset-dns/clusterset-dns/test/controlplane"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/link"
	"github.com/clusterset-dns/clusterset-dns/test/scenario"
)

// TestScenarios runs all scenarios on real control planes.
func TestScenarios(t *testing.T) {
	for _, each := range scenario.All {
		t.Run(each.Name, func(t *testing.T) {
			if len(each.Clusters) == 2 {
				t.Parallel() // those of more run before, one by one: they take all pairs
			}
			each.On(t, &realBed{})
		})
	}
}

// TestContractScenarios runs those on which the simulation is trusted least: a
// partition, and the fencing of the leader.
func TestContractScenarios(t *testing.T) {
	names := []string{"a member changes while it is silent", "the Lease of the leader is taken"}
	for _, each := range scenario.All {
		if slices.Contains(names, each.Name) {
			t.Run(each.Name, func(t *testing.T) { each.On(t, &realBed{}) })
			names = slices.DeleteFunc(names, func(name string) bool { return name == each.Name })
		}
	}
	if len(names) > 0 {
		t.Errorf("there is no scenario %q", names)
	}
}

// rate is how much faster than the real time the controllers' clocks are.
const rate = 6

// A realBed is control planes for a scenario.
type realBed struct {
	planes map[string]*cluster
	last   *cluster // for the last name, unless it is nil
}

func (b *realBed) Platforms(t *testing.T, names []string) (platforms []scenario.Platform) {
	t.Helper()
	east, west := bed(t) // west has two families
	free := []*cluster{east, west}
	if len(names) > 2 {
		third, fourth := bed(t)
		free = []*cluster{east, west, third, fourth}
	}
	b.planes = map[string]*cluster{}
	namespace := fmt.Sprintf("scenario-%x", time.Now().UnixNano())
	for i, name := range names {
		plane := free[i]
		if i == len(names)-1 && b.last != nil {
			plane = b.last
		}
		b.planes[name] = plane
		eventually(t, "nothing of other scenarios in "+plane.Name(), plane.nothingEnds)
		platforms = append(platforms, scenario.Platform{
			Admin: plane.Config(), Controller: plane.configOf(t, system, controllerName), Namespace: namespace,
			Credential: func(reader string) []byte {
				remote, err := plane.Remote(reader)
				must(t, err)
				kubeconfig, err := remote.ServiceAccountKubeconfig(t.Context(), system, memberName)
				must(t, err)
				return kubeconfig
			},
		})
	}
	return platforms
}

// nothingEnds fails while a namespace is being deleted, with what is in it.
func (c *cluster) nothingEnds(ctx context.Context) error {
	namespaces, err := c.CoreV1().Namespaces().List(ctx, metav1.ListOptions{})
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

func (b *realBed) Cut(reader, source string, direction scenario.Direction) {
	b.remote(reader, source).CutOff(link.Direction(direction))
}

func (b *realBed) Restore(reader, source string) { b.remote(reader, source).Reconnect() }

func (b *realBed) Reset(reader, source string) { b.remote(reader, source).Reset() }
