// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/index"
	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/name"
	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/watch"
)

// TestPluginOnARealWatch: what the controller writes reaches the answers of the
// plugin, which reads it with the rights of deploy/coredns-rbac.yaml.
func TestPluginOnARealWatch(t *testing.T) {
	t.Parallel()
	east, west := bed(t)
	joined(t, east, west)
	rbac, err := os.ReadFile("../../deploy/coredns-rbac.yaml")
	must(t, err)
	east.create(t, "", string(rbac))
	source, stop, err := watch.New(east.configOf(t, metav1.NamespaceSystem, "clusterset-coredns"), watch.Options{}, observer{t})
	must(t, err)
	t.Cleanup(stop)
	names := source.View(&index.Config{Zones: []string{"clusterset.local."}, TTL: 5})
	t.Cleanup(func() { source.Release(names) })

	demo := namespace(t, east, west)
	answers := func(service, want string) {
		t.Helper()
		eventually(t, "the answer for "+service, func(context.Context) error {
			if got := answer(names.Snapshot(), service+"."+demo+".svc"); got != want {
				return fmt.Errorf("got %q, want %q", got, want)
			}
			return nil
		})
	}
	west.create(t, demo, service("web", "10.65.0.10")+serviceExport("web")+headless("db", "10.65.0.11")+serviceExport("db"))
	east.create(t, demo, headless("db", "10.64.0.11")+serviceExport("db"))
	web := key(demo, "web")
	expect(t, web, "ClusterSetIP of west Ready [west/10.65.0.10]", east)
	serviceImport, err := east.serviceImport(t.Context(), web)
	must(t, err)
	answers("web", strings.Join(serviceImport.Spec.IPs, " "))
	answers("db", "10.64.0.11 10.65.0.11")
	west.create(t, demo, endpoints("db", "10.65.0.12"))
	answers("db", "10.64.0.11 10.65.0.12")
	east.unexport(t, key(demo, "db"))
	answers("db", "10.65.0.12")
	west.unexport(t, web)
	answers("web", "NXDOMAIN")
}

// answer is what a client gets that asks for A records.
func answer(snapshot *index.Snapshot, service string) string {
	if snapshot == nil {
		return "SERVFAIL"
	}
	question := index.Question{
		Name: service + ".clusterset.local.", Type: dns.TypeA,
		Client: index.Client{Size: dns.MaxMsgSize}, Request: name.Parse(service),
	}
	reply := snapshot.Lookup(&question)
	if reply.Result == index.NotExist {
		return "NXDOMAIN"
	}
	var addresses []string
	for _, record := range reply.Answer {
		addresses = append(addresses, strings.TrimPrefix(record.String(), record.Header().String()))
	}
	slices.Sort(addresses)
	return strings.Join(addresses, " ")
}

// observer fails the test if the plugin may not read something, or cannot.
type observer struct{ t *testing.T }

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

func (observer) Objects(watch.Resource, int)    {}
func (observer) Totals(_, _ index.Totals)       {}
func (observer) Programmed(bool, time.Duration) {}
