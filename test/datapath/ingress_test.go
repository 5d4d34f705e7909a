// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterset-dns/clusterset-dns/test/datapath/tally"
)

// ingress: Debian's nginx in north, with the configuration in the documentation, reaches the pods of the other
// clusters.
func ingress(t *testing.T, b *bed) {
	s, east, client := b.deployJack(t)
	imported, err := b.north.mcs.MulticlusterV1beta1().ServiceImports(s.namespace).Get(t.Context(), s.name,
		metav1.GetOptions{})
	must(t, err)
	if derived := imported.Annotations["multicluster.kubernetes.io/derived-service"]; derived == "" {
		t.Error("the import names no derived Service")
	} else {
		documented(t, "use/ingress.md", "name: "+derived+"\n")
	}
	proxy := b.north.pod(t, podSpec{namespace: s.namespace, name: "nginx"})
	proxy.nginx(t, documented(t, "use/ingress.md", "proxy_pass http:"))
	url := "http://" + proxy.addresses[0].String() + "/jack"
	answer := func(clusters ...string) func(context.Context) error {
		return func(ctx context.Context) error {
			counted, err := client.get(ctx, 50, url, "-H", "Host: demo.localdev.jack")
			if by := slices.Sorted(maps.Keys(counted.Clusters())); err == nil && !slices.Equal(by, clusters) {
				err = errors.New(counted.String())
			}
			return err
		}
	}
	eventually(t, "both clusters to answer", answer("east", "west"))
	east.setReady(t, false)
	eventually(t, "west to answer alone", answer("west"))
	// A request with another Host gets another site.
	if out, err := client.command(t.Context(), "curl", "--silent", "--fail", "--max-time", "5", url); err == nil {
		t.Errorf("without the site's host name: %q", out)
	}
}

// nginx starts Debian's nginx in the pod with a configuration, and returns its folder.
func (p *pod) nginx(t testing.TB, configuration string) (folder string) {
	folder = t.TempDir()
	p.run(t, "nginx", "-p", folder, "-c", p.cluster.writeFile(t, p.name+".conf", configuration), "-e", "stderr", "-g",
		"daemon off; master_process off; pid nginx.pid;")
	return folder
}

// deployJack exports the Service of the documentation's example in east and west, and imports it in north.
func (b *bed) deployJack(t *testing.T) (s service, east, client *pod) {
	s = service{namespace: "jack", name: "web", ports: []corev1.ServicePort{port("http", corev1.ProtocolTCP, 81, 8080)}}
	b.createNamespace(t, s.namespace)
	east = b.east.deploy(t, s, 1, "http:8080")[0]
	b.west.deploy(t, s, 1, "http:8080")
	b.north.awaitEndpoints(t, s, 2, nil)
	return s, east, b.north.client(t, s.namespace, 0)
}

// get requests a page count times over new connections, and counts the answering pods. It fails unless all are answered.
func (p *pod) get(ctx context.Context, count int, url string, flags ...string) (counted tally.Attempts, err error) {
	args := append([]string{"--silent", "--show-error", "--fail", "--max-time", fmt.Sprint(lossless.Seconds())}, flags...)
	out, err := p.command(ctx, "curl", append(args, fmt.Sprintf("%s?[1-%d]", url, count))...)
	for line := range strings.Lines(out) {
		counted = append(counted, tally.Attempt{Who: strings.TrimSpace(line)})
	}
	if err == nil && len(counted) != count {
		err = fmt.Errorf("%d of %d requests are answered", len(counted), count)
	}
	return counted, err
}
