// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/clusterset-dns/clusterset-dns/controller"
	"github.com/clusterset-dns/clusterset-dns/test/scenario"
	"github.com/clusterset-dns/clusterset-dns/test/sim"
	"github.com/clusterset-dns/clusterset-dns/test/sim/apiserver"
	"github.com/clusterset-dns/clusterset-dns/test/sim/network"
)

// TestScenarios runs all scenarios on simulated clusters. test/controller runs them on real control planes.
func TestScenarios(t *testing.T) {
	for _, each := range scenario.All {
		t.Run(each.Name, func(t *testing.T) {
			sim.RunIdle(t, each.Clusters, func(t *testing.T, set *sim.ClusterSet) {
				each.On(t, bed{set.Network, set})
			})
		})
	}
}

// A bed is a simulated cluster set for a scenario. Its links are those of the network.
type bed struct {
	*network.Network
	set *sim.ClusterSet
}

func (b bed) Platforms(*testing.T, []string) (platforms []scenario.Platform) {
	for _, c := range b.set.Clusters() {
		for _, zone := range []string{"-a", "-b"} {
			c.PutNode(c.Name+zone, c.Name+zone)
		}
		platforms = append(platforms, scenario.Platform{
			Admin: c.Config(), Controller: c.Config(), Credential: c.Kubeconfig, Namespace: "scenario",
			Options: controller.Options{DialMember: b.set.Network.Dialer(c.Name)},
		})
	}
	return platforms
}

func (bed) Pass(d time.Duration) { sim.Wait(d) }

func (bed) Rate() int { return 1 }

func (b bed) Through(_ *testing.T, reader, source string, gateway *scenario.Gateway) []byte {
	from := b.set.Cluster(source)
	from.API.SetFault(reader, func(req *http.Request, serve apiserver.Serve) (*http.Response, error) {
		asked := req.Clone(req.Context())
		gateway.Ask(asked.Header)
		response, err := serve(asked)
		if err == nil {
			err = gateway.Answer(response)
		}
		return response, err
	})
	return from.Kubeconfig(reader)
}
