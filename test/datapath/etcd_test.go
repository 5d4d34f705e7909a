// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/clusterset-dns/clusterset-dns/test/controlplane/assets"
	"github.com/clusterset-dns/clusterset-dns/test/datapath/tally"
)

// etcdDiscovery: etcd finds its peers by the SRV records of a headless service, two of them in east and one in west.
func etcdDiscovery(t *testing.T, b *bed) {
	s := service{
		namespace: b.namespace(t), name: "etcd",
		ports: []corev1.ServicePort{
			port("etcd-server", corev1.ProtocolTCP, 2380, 2380), port("etcd-client", corev1.ProtocolTCP, 2379, 2379),
		},
		change: func(s *corev1.Service) {
			s.Spec.ClusterIP = corev1.ClusterIPNone
			s.Spec.PublishNotReadyAddresses = true // they are ready once they have found each other
		},
	}
	var members []*pod
	for _, place := range []struct {
		cluster *cluster
		name    string
		node    int
	}{{b.east, "etcd-0", 0}, {b.east, "etcd-1", 1}, {b.west, "etcd-0", 0}} {
		members = append(members, place.cluster.pod(t, podSpec{
			namespace: s.namespace, name: place.name, subdomain: s.name, labels: map[string]string{"app": s.name},
			node: place.node,
		}))
	}
	b.east.export(t, s)
	b.west.export(t, s)
	for _, member := range members {
		member.awaitRecords(t, s.name+"."+s.namespace+"."+zone, len(members))
	}
	started := time.Now()
	for _, member := range members {
		domain := fmt.Sprintf("%s.%s.%s", s.name, s.namespace, zone)
		own := fmt.Sprintf("%s.%s.%s", member.name, member.cluster.Name(), domain)
		member.run(t, b.paths[assets.Etcd],
			"--name="+member.cluster.Name()+"-"+member.name,
			"--data-dir="+t.TempDir(),
			"--discovery-srv="+domain,
			"--initial-advertise-peer-urls=http://"+own+":2380",
			"--advertise-client-urls=http://"+own+":2379",
			"--listen-peer-urls=http://0.0.0.0:2380",
			"--listen-client-urls=http://0.0.0.0:2379",
			"--unsafe-no-fsync",
			"--log-level=warn",
		)
	}
	client := b.north.client(t, s.namespace, 0)
	formed := tally.New()
	eventually(t, "etcd to have three members and a leader", func(ctx context.Context) error {
		names, err := client.etcdMembers(ctx, fmt.Sprintf("http://etcd-0.west.etcd.%s.%s:2379", s.namespace, zone))
		if err == nil && !maps.Equal(names, map[string]int{"east/etcd-0": 1, "east/etcd-1": 1, "west/etcd-0": 1}) {
			err = fmt.Errorf("its members are %v", names)
		}
		formed.Answers = names
		return err
	})
	b.figures.add("etcd by _etcd-server._tcp", formed,
		"members of one etcd, formed after "+seconds(time.Since(started)))
}

// etcdMembers asks a member of an etcd for all members, where it has a leader.
func (p *pod) etcdMembers(ctx context.Context, url string) (map[string]int, error) {
	out, err := p.command(ctx, "curl", "--silent", "--show-error", "--fail", "--max-time", "5",
		"--data", `{"linearizable": true}`, url+"/v3/cluster/member/list")
	if err != nil {
		return nil, err
	}
	var list struct {
		Members []struct {
			Name     string   `json:"name"`
			PeerURLs []string `json:"peerURLs"`
		} `json:"members"`
	}
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		return nil, fmt.Errorf("read the members in %q: %w", out, err)
	}
	names := map[string]int{}
	for _, member := range list.Members {
		cluster, name, found := strings.Cut(member.Name, "-")
		if !found || !slices.ContainsFunc(member.PeerURLs, func(url string) bool { return len(url) > 0 }) {
			return nil, fmt.Errorf("a member has not started: %q", out)
		}
		names[cluster+"/"+name]++
	}
	return names, nil
}

// awaitRecords waits until the pod finds so many targets of _etcd-server._tcp of a name.
func (p *pod) awaitRecords(t testing.TB, name string, count int) {
	t.Helper()
	eventually(t, fmt.Sprintf("%s finds %d targets at %s", p.identity(), count, name), func(ctx context.Context) error {
		out, err := p.command(ctx, p.cluster.bed.program("pod"), "srv", "etcd-server", "tcp", name)
		if found := strings.Fields(out); err == nil && len(found) != count {
			err = fmt.Errorf("it finds %v", found)
		}
		return err
	})
}
