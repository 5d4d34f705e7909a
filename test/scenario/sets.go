// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

// lifeInASet is the life of a service that all clusters export, one after the
// other. Each step ends in the same objects everywhere.
func lifeInASet(s *Set) {
	// Sorted by name, which decides between exports of the same second.
	all := s.clusters
	first, others, last := all[0], all[1:], all[len(all)-1]
	address := func(i int) string { return fmt.Sprintf("10.80.0.%d", i+1) }
	for i, c := range all {
		c.Export("web:" + address(i))
		s.agree("VIP", all[:i+1], all...)
	}
	s.conditions("NoConflicts")

	for i, c := range all {
		c.SetEndpoints("web", address(i), address(i+100))
	}
	s.agree("VIP", all, all...)
	first.SetEndpoints("web")
	s.agree("VIP", all, all...)
	first.SetEndpoints("web", address(0))
	s.agree("VIP", all, all...)

	// The oldest gets one more port: a conflict, until all have it.
	for i, c := range all {
		c.PutService("web", "{ports: [{name: http, port: 80, targetPort: 8080}, {name: more, port: 81, targetPort: 8081}]}")
		if i < len(all)-1 {
			s.conditions("PortConflict")
		}
	}
	s.conditions("NoConflicts")

	// It becomes headless: the oldest decides.
	for i, c := range all {
		c.DeleteService("web")
		s.Eventually("no Service", func() error { return c.conditionsDiffer("Conflict=NoConflicts Ready=Failed Valid=NoService") })
		c.Export("web!" + address(i))
		s.Eventually("a Service", func() error {
			if got := c.conditions("web"); !strings.HasSuffix(got, "Valid=Valid") {
				return fmt.Errorf("got %s", got)
			}
			return nil
		})
		if i == 0 {
			s.conditions("PortConflict,TypeConflict")
		}
		s.agree("", all, all...)
	}
	s.conditions("NoConflicts")

	last.DeleteNamespace()
	s.agree("", all[:len(all)-1], all[:len(all)-1]...)
	last.CreateNamespace()
	s.agree("", all[:len(all)-1], all...)
	last.Export("web!" + address(len(all)-1))
	s.agree("", all, all...)

	for _, c := range others {
		s.Leave(Pair{c, first})
		s.Leave(Pair{first, c})
	}
	s.Expect(View{"web": first.Name + "/10.80.0.1 -> 10.80.0.1"}, first)
	s.agree("", others, others...)
	for _, c := range others {
		s.Join(Pair{c, first})
		s.Join(Pair{first, c})
	}
	s.agree("", all, all...)
	s.Quiet()
	for i, c := range all {
		c.Withdraw("web")
		s.agree("", all[i+1:], all...)
	}
}

// conditions waits until every export has that condition Conflict.
func (s *Set) conditions(conflict string) {
	s.Helper()
	for _, c := range s.clusters {
		s.Eventually("conditions in "+c.Name, func() error {
			return c.conditionsDiffer("Conflict=" + conflict + " Ready=Ready Valid=Valid")
		})
	}
}

func (c *Cluster) conditionsDiffer(want string) error {
	if got := c.conditions("web"); got != want {
		return fmt.Errorf("got %s, want %s", got, want)
	}
	return nil
}

// agree waits until the clusters have the same objects of the service web, which
// the exporters export, and DNS answers with the VIP or the addresses.
func (s *Set) agree(answer string, exporters []*Cluster, clusters ...*Cluster) {
	s.Helper()
	if len(exporters) == 0 {
		s.Expect(View{"web": gone}, clusters...)
		return
	}
	var names []string
	for _, c := range exporters {
		names = append(names, c.Name)
	}
	s.Eventually("the same import everywhere", func() error {
		var texts []string
		for _, c := range clusters {
			imported, err := c.MCS.MulticlusterV1beta1().ServiceImports(s.namespace).Get(s.Context(), "web", metav1.GetOptions{})
			if err != nil {
				return err
			}
			endpoints, answered, _ := strings.Cut(c.See("web"), "-> ")
			answered, _, _ = strings.Cut(answered, " [")
			want := answer
			if want == "" {
				var addresses []string
				for each := range strings.FieldsSeq(endpoints) {
					_, address, _ := strings.Cut(each, "/")
					addresses = append(addresses, address)
				}
				slices.Sort(addresses)
				want = strings.Join(addresses, " ")
			}
			var of []string
			for _, each := range imported.Status.Clusters {
				of = append(of, each.Cluster)
			}
			if answered != want || !slices.Equal(of, names) {
				return fmt.Errorf("%s: %v and %s, want %v and %s of %s", c.Name, of, answered, names, want, endpoints)
			}
			imported.Spec.IPs, imported.Spec.IPFamilies = nil, nil
			text, err := json.MarshalIndent([]any{imported.Spec, imported.Labels, imported.Annotations, c.common()}, "", " ")
			if err != nil {
				return err
			}
			if texts = append(texts, string(text)); texts[0] != string(text) {
				return fmt.Errorf("%s has\n%s\n%s has\n%s", clusters[0].Name, texts[0], c.Name, text)
			}
		}
		return nil
	})
}

// common is what of the slices is the same in all clusters.
func (c *Cluster) common() (texts []string) {
	for _, slice := range c.Slices("web") {
		var ports []string
		for _, port := range slice.Ports {
			ports = append(ports, fmt.Sprintf("%s %s %d", *port.Name, *port.Protocol, *port.Port))
		}
		slices.Sort(ports)
		text := fmt.Sprint(slice.Labels[export.LabelSourceCluster], slice.AddressType, ports)
		for _, each := range slice.Endpoints {
			text += fmt.Sprint(" ", each.Addresses, mark(each.Conditions), each.Zone)
		}
		texts = append(texts, text)
	}
	slices.Sort(texts)
	return texts
}
