// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterset-dns/clusterset-dns/test/datapath/tally"
)

// host is the host name of the site behind the ingress.
const host = "demo.localdev.jack"

// ingress: an nginx of Debian's in north, with the configuration that the documentation shows, leads to the pods of the others.
func ingress(t *testing.T, b *bed) {
	const namespace = "jack" // as in the documentation
	for _, c := range b.all() {
		c.createNamespace(t, namespace)
	}
	s := service{namespace: namespace, name: "web", ports: []corev1.ServicePort{port("http", corev1.ProtocolTCP, 81, 8080)}}
	east := b.east.deploy(t, s, 1, "http:8080")
	b.west.deploy(t, s, 1, "http:8080")
	client := b.north.client(t, namespace, 0)
	b.north.awaitEndpoints(t, s, 2)

	imported, err := b.north.mcs.MulticlusterV1beta1().ServiceImports(namespace).Get(t.Context(), s.name, metav1.GetOptions{})
	must(t, err)
	document, configuration := documented(t)
	if derived := imported.Annotations["multicluster.kubernetes.io/derived-service"]; derived == "" || !strings.Contains(document, "name: "+derived+"\n") {
		t.Errorf("the document does not name the derived Service %q", derived)
	}
	folder := t.TempDir()
	proxy := b.north.pod(t, podSpec{namespace: namespace, name: "nginx", labels: map[string]string{"app": "nginx"}})
	file := b.north.writeFile(t, "nginx.conf", configuration)
	proxy.run(t, "nginx", "-p", folder, "-c", file, "-e", "stderr", "-g", "daemon off; master_process off; pid nginx.pid;")

	url := "http://" + proxy.addresses[0].String() + "/jack"
	get := func(ctx context.Context) tally.Attempt {
		out, err := client.command(ctx, "curl", "--silent", "--show-error", "--fail", "--max-time", "5", "-H", "Host: "+host, url)
		if err != nil {
			return tally.Attempt{Failure: err.Error()}
		}
		return tally.Attempt{Who: strings.TrimSpace(out)}
	}
	ask := func(count int) *tally.Tally {
		counted := tally.New()
		for range count {
			counted.Add(get(t.Context()))
		}
		return counted
	}
	answeredBy := func(clusters ...string) func(context.Context) error {
		return func(context.Context) error {
			counted := ask(16)
			if counted.Lost() > 0 || len(counted.Clusters()) != len(clusters) || counted.Clusters()[clusters[0]] == 0 {
				return errors.New(counted.String())
			}
			return nil
		}
	}
	eventually(t, "both clusters to answer", answeredBy("east", "west"))
	counted := ask(50)
	if counted.Lost() > 0 || len(counted.Clusters()) != 2 {
		t.Errorf("requests: %s", counted)
	}
	b.figures.add("ingress in north", counted, "curl → nginx → clusterset IP")

	began := east[0].setReady(t, false)
	eventually(t, "west to answer alone", answeredBy("west"))
	took := time.Since(began)
	if counted = ask(50); counted.Clusters()["west"] != 50 {
		t.Errorf("requests after east lost its pods: %s", counted)
	}
	b.figures.add("ingress in north, east lost its pods", counted, fmt.Sprintf("after at most %s", seconds(took)))
	// Another host is another site.
	if out, err := client.command(t.Context(), "curl", "--silent", "--fail", "--max-time", "5", url); err == nil {
		t.Errorf("without the site's host name: %q", out)
	}
}

// documented is the document on ingress, and the configuration of nginx in it.
func documented(t *testing.T) (document, configuration string) {
	t.Helper()
	text, err := os.ReadFile(filepath.FromSlash("../../docs/ingress.md"))
	must(t, err)
	document = string(text)
	_, block, found := strings.Cut(document, "```nginx\n")
	configuration, _, ended := strings.Cut(block, "```")
	if !found || !ended {
		t.Fatal("docs/ingress.md has no configuration of nginx")
	}
	return document, configuration
}
