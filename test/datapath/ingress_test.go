// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterset-dns/clusterset-dns/test/datapath/tally"
)

// host is the host name of the site behind the ingress.
const host = "demo.localdev.jack"

// ingress: an nginx of Debian's in north, with the configuration that the documentation shows, reaches the pods of
// the others.
func ingress(t *testing.T, b *bed) {
	const namespace = "jack" // as in the documentation
	for _, c := range b.all() {
		c.createNamespace(t, namespace)
	}
	s := jack(namespace)
	east := b.east.deploy(t, s, 1, "http:8080")
	b.west.deploy(t, s, 1, "http:8080")
	client := b.north.client(t, namespace, 0)
	b.north.awaitEndpoints(t, s, 2)

	imported, err := b.north.mcs.MulticlusterV1beta1().ServiceImports(namespace).Get(t.Context(), s.name,
		metav1.GetOptions{})
	must(t, err)
	document, configuration := documented(t)
	if derived := imported.Annotations["multicluster.kubernetes.io/derived-service"]; derived == "" ||
		!strings.Contains(document, "name: "+derived+"\n") {
		t.Errorf("the document does not name the derived Service %q", derived)
	}
	proxy := b.north.pod(t, podSpec{namespace: namespace, name: "nginx", labels: map[string]string{"app": "nginx"}})
	site := startSite(t, client, proxy, configuration)

	eventually(t, "both clusters to answer", site.answeredBy("east", "west"))
	b.figures.add("ingress in north", site.ask(t, 50, "east", "west"), "curl → nginx → clusterset IP")
	began := east[0].setReady(t, false)
	eventually(t, "west to answer alone", site.answeredBy("west"))
	took := time.Since(began)
	b.figures.add("ingress in north, east lost its pods", site.ask(t, 50, "west"),
		fmt.Sprintf("after at most %s", seconds(took)))
	// Another host is another site.
	if out, err := client.command(t.Context(), "curl", "--silent", "--fail", "--max-time", "5", site.url); err == nil {
		t.Errorf("without the site's host name: %q", out)
	}
}

// jack is the Service of the documentation's example.
func jack(namespace string) service {
	return service{
		namespace: namespace, name: "web", ports: []corev1.ServicePort{port("http", corev1.ProtocolTCP, 81, 8080)},
	}
}

// site is what a client sees of an ingress.
type site struct {
	client *pod
	url    string
}

// startSite starts nginx in a pod, whose cluster DNS must know the name in its configuration by now.
func startSite(t *testing.T, client, proxy *pod, configuration string) *site {
	t.Helper()
	file := proxy.cluster.writeFile(t, "nginx.conf-"+proxy.namespace, configuration)
	proxy.run(t, "nginx", "-p", t.TempDir(), "-c", file, "-e", "stderr", "-g",
		"daemon off; master_process off; pid nginx.pid;")
	return &site{client: client, url: "http://" + proxy.addresses[0].String() + "/jack"}
}

func (s *site) get(ctx context.Context) tally.Attempt {
	out, err := s.client.command(ctx, "curl", "--silent", "--show-error", "--fail", "--max-time",
		strconv.Itoa(int(lossless.Seconds())), "-H", "Host: "+host, s.url)
	if err != nil {
		return tally.Attempt{Failure: err.Error()}
	}
	return tally.Attempt{Who: strings.TrimSpace(out)}
}

func (s *site) try(ctx context.Context, count int, clusters ...string) (*tally.Tally, error) {
	counted := tally.New()
	for range count {
		counted.Add(s.get(ctx))
	}
	if counted.Lost() > 0 || !slices.Equal(slices.Sorted(maps.Keys(counted.Clusters())), clusters) {
		return counted, errors.New(counted.String())
	}
	return counted, nil
}

// ask asks so often: exactly these clusters, which are sorted, must answer, and nothing may be lost.
func (s *site) ask(t *testing.T, count int, clusters ...string) *tally.Tally {
	t.Helper()
	counted, err := s.try(t.Context(), count, clusters...)
	if err != nil {
		t.Errorf("%v were to answer: %v", clusters, err)
	}
	return counted
}

// answeredBy checks that exactly these clusters answer.
func (s *site) answeredBy(clusters ...string) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := s.try(ctx, 16, clusters...)
		return err
	}
}

// documented is the document on ingress, and the configuration of nginx in it.
func documented(t *testing.T) (document, configuration string) {
	t.Helper()
	text, err := os.ReadFile(filepath.FromSlash("../../docs/use/ingress.md"))
	must(t, err)
	document = string(text)
	_, block, found := strings.Cut(document, "```nginx\n")
	configuration, _, ended := strings.Cut(block, "```")
	if !found || !ended {
		t.Fatal("docs/use/ingress.md has no configuration of nginx")
	}
	return document, configuration
}
