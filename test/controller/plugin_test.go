// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"os"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/watch"
	"github.com/clusterset-dns/clusterset-dns/test/answers"
	"github.com/clusterset-dns/clusterset-dns/test/clusterset"
	"github.com/clusterset-dns/clusterset-dns/test/scenario"
)

// TestPluginOnARealWatch: what the controller writes reaches the answers of the
// plugin, which reads it with the rights of deploy/coredns-rbac.yaml.
func TestPluginOnARealWatch(t *testing.T) {
	t.Parallel()
	bed := &realBed{}
	run(t, bed, func(s *scenario.Set, east, west *scenario.Cluster) {
		rbac, err := os.ReadFile("../../deploy/coredns-rbac.yaml")
		must(t, err)
		must(t, clusterset.Apply(t.Context(), bed.planes["east"], rbac))
		names, err := answers.Start(configOf(t, bed.planes["east"], metav1.NamespaceSystem, "clusterset-coredns"),
			observer{t: t})
		must(t, err)
		defer names.Stop()
		expect := func(service, want string) {
			t.Helper()
			s.Eventually("the answer for "+service, func() error {
				if got := names.Text(service, s.Namespace()); got != want {
					return fmt.Errorf("got %q, want %q", got, want)
				}
				return nil
			})
		}
		west.Export("web:10.65.0.10", "db!10.65.0.11")
		east.Export("db!10.64.0.11")
		expect("web", strings.Join(east.IPs("web"), " "))
		expect("db", "10.64.0.11 10.65.0.11")
		west.SetEndpoints("db", "10.65.0.12")
		expect("db", "10.64.0.11 10.65.0.12")
		east.Withdraw("db")
		expect("db", "10.65.0.12")
		west.Withdraw("web")
		expect("web", "NXDOMAIN")
	})
}

// observer fails the test if the plugin may not read something, or cannot.
type observer struct {
	answers.Unobserved
	t *testing.T
}

func (o observer) Asked(resource watch.Resource, _ string, err error) {
	if err != nil {
		o.t.Errorf("%s: %v", resource, err)
	}
}

func (o observer) Undecodable(resource watch.Resource, object string, err error) {
	if err != nil {
		o.t.Errorf("%s %s: %v", resource, object, err)
	}
}
