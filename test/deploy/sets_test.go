// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/test/clusterset"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/controlplanetest"
)

const several = root + "/docs/operate/operations.md"

// TestTwoSets follows docs/operate/operations.md in one cluster: two releases, each with the rights that it gives its
// controller, a Namespace of each set, and a zone for each.
func TestTwoSets(t *testing.T) {
	cluster := controlplanetest.Start(t, controlplane.Options{Name: "sets", WithoutCRDs: true})[0]
	admin := kubeconfig(t, cluster)
	cli := func(args ...string) string {
		t.Helper()
		return run(t, "", kubectl(t), append([]string{"--kubeconfig", admin}, args...)...)
	}
	release := func(args ...string) (string, error) {
		return try(t.Context(), t, "", helm(t), append(args, "--kubeconfig", admin, "--wait", "--timeout", "2m")...)
	}
	const blue = "clusterset-dns-blue"
	_, err := release("install", "clusterset-dns", chart, "--namespace", system, "--create-namespace", "--set",
		"clusterId=east")
	must(t, err)
	install := strings.Fields(strings.ReplaceAll(regexp.MustCompile(`(?s)helm (install clusterset-dns-blue .*?)\n` + "```").
		FindStringSubmatch(read(t, several))[1], "\\\n", ""))
	for i, word := range install {
		switch word {
		case "deploy/chart":
			install[i] = chart
		case "--kube-context":
			install[i] = "--description" // kubeconfig has no such context
		}
	}
	_, err = release(install...)
	must(t, err)
	again := strings.Fields(strings.ReplaceAll(strings.Join(install, " "), blue, "another"))
	if output, err := release(again...); err == nil || !strings.Contains(err.Error(), "cannot be imported") {
		t.Errorf("a second release of the set: %v\n%s", err, output)
	}

	const shop, office = "sets-shop", "sets-office"
	for _, namespace := range []string{shop, office} {
		cli("create", "namespace", namespace)
	}
	cli("label", "namespace", shop, "clusterset-dns.github.io/clusterset=blue")
	controllers := map[string]*clusterset.Program{}
	for namespace, flags := range map[string][]string{system: nil, blue: {"--clusterset", "blue"}} {
		running := controllerOf(t, cluster, namespace,
			append(flags, "--namespace", namespace, "--cluster-id", "east", "--leader-elect=false")...)
		eventually(t, "the controller in "+namespace, func(ctx context.Context) error {
			if ready, err := running.Ready(ctx); !ready || err != nil {
				return fmt.Errorf("not ready: %w", err)
			}
			return nil
		})
		controllers[namespace] = running
	}

	for _, namespace := range []string{shop, office} {
		apply(t, cluster, `
{apiVersion: v1, kind: Service, metadata: {name: web, namespace: `+namespace+`}, spec: {ports: [{port: 80}]}}
---
{apiVersion: multicluster.x-k8s.io/v1beta1, kind: ServiceExport, metadata: {name: web, namespace: `+namespace+`}}`)
	}
	expectSet(t, cluster, shop, "blue")
	expectSet(t, cluster, office, "")
	server := start(t, cluster, corefileOfSets(t, cluster))
	expect := func(answers map[string]string) {
		t.Helper()
		for name, want := range answers {
			eventually(t, name+" "+want, func(ctx context.Context) error {
				got, err := ask(ctx, server, name, "A")
				if err == nil && (got == "NXDOMAIN") != (want == "NXDOMAIN") {
					err = fmt.Errorf("got %s, want %s", got, want)
				}
				return err
			})
		}
	}
	expect(map[string]string{
		"web.sets-shop.svc.blue.local.": "an address", "web.sets-shop.svc.clusterset.local.": "NXDOMAIN",
		"web.sets-office.svc.clusterset.local.": "an address", "web.sets-office.svc.blue.local.": "NXDOMAIN",
	})

	// The Namespace moves.
	cli("label", "namespace", shop, "clusterset-dns.github.io/clusterset-")
	expectSet(t, cluster, shop, "")
	expect(map[string]string{
		"web.sets-shop.svc.clusterset.local.": "an address", "web.sets-shop.svc.blue.local.": "NXDOMAIN",
	})
	cli("label", "namespace", shop, "clusterset-dns.github.io/clusterset=blue")
	expectSet(t, cluster, shop, "blue")

	// The cluster leaves the set blue. Nothing of the default set ends.
	must(t, controllers[blue].Stop(t.Context(), time.Minute))
	_, leave, _ := strings.Cut(read(t, several), "## Leave a set")
	for _, line := range regexp.MustCompile(`(?m)^(helm uninstall|kubectl) (.*)$`).FindAllStringSubmatch(leave, -1) {
		args := strings.Fields(strings.NewReplacer("--kube-context east", "", "--context east", "").Replace(line[2]))
		if line[1] == "kubectl" {
			cli(args...)
			continue
		}
		run(t, "", helm(t), append([]string{"uninstall", "--kubeconfig", admin}, args...)...)
	}
	if _, err := importOf(t.Context(), cluster, shop, "web"); !apierrors.IsNotFound(err) {
		t.Errorf("the import of the set that the cluster left: %v", err)
	}
	expectSet(t, cluster, office, "")
	cli("get", "clusterrole", "clusterset-controller", "clusterset-member")
}

// expectSet waits for the import web of a Namespace to be of a set.
func expectSet(t *testing.T, cluster *controlplane.Cluster, namespace, set string) {
	t.Helper()
	eventually(t, namespace+" has an import of the set "+set, func(ctx context.Context) error {
		found, err := importOf(ctx, cluster, namespace, "web")
		if err != nil {
			return err
		}
		if got := found.GetLabels()[export.LabelSet]; got != set {
			return fmt.Errorf("it is of set %q", got)
		}
		return nil
	})
}

// corefileOfSets is the Corefile of the page, for this test.
func corefileOfSets(t *testing.T, cluster *controlplane.Cluster) string {
	t.Helper()
	credential, err := cluster.Kubeconfig()
	must(t, err)
	path := filepath.Join(t.TempDir(), "kubeconfig")
	must(t, os.WriteFile(path, credential, 0o600))
	text := regexp.MustCompile("(?s)```\n(clusterset.local:53 .*?)```").FindStringSubmatch(read(t, several))[1]
	return strings.NewReplacer(":53 {", ":PORT {\n bind 127.0.0.1", "multicluster {",
		"multicluster {\n kubeconfig "+path).Replace(text)
}
