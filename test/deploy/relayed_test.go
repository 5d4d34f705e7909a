// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/clusterset-dns/clusterset-dns/controller/relay/mailbox"
	"github.com/clusterset-dns/clusterset-dns/test/clusterset"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/controlplanetest"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/programs"
)

// TestRelay follows docs/operate/relay.md: two clusters export and import through an API server that both dial, and
// neither has an address of the other or a credential for it. All blocks of the page are run.
func TestRelay(t *testing.T) {
	clusters := controlplanetest.Start(t, controlplane.Options{Name: "east", Zones: []string{}},
		controlplane.Options{Name: "west", Zones: []string{}},
		controlplane.Options{Name: "hub", Zones: []string{}, WithoutCRDs: true})
	east, west, hub := clusters[0], clusters[1], clusters[2]
	shell := shellOf(t, clusters...)
	page := func(text string) string {
		return strings.ReplaceAll(relayBlock(t, text), "https://hub.example.org:6443", hub.URL())
	}
	swap := strings.NewReplacer("east", "west", "west", "east")
	both := func(text string) {
		t.Helper()
		shell(page(text))
		shell(swap.Replace(page(text)))
	}
	for _, cluster := range []*controlplane.Cluster{east, west} {
		run(t, template(t, "--set", "clusterId="+cluster.Name(), "--set", "namespace.create=true"), kubectl(t),
			"--kubeconfig", kubeconfig(t, cluster), "apply", "--server-side", "-f", "-")
		controllerOf(t, cluster)
	}

	shell(page("helm template"))
	eventually(t, "the certificate of the relay", func(ctx context.Context) error {
		_, err := hub.Client().CoreV1().ConfigMaps("clusterset-relay").Get(ctx, "kube-root-ca.crt", metav1.GetOptions{})
		return err
	})
	both("create token east")
	expectRights(t, east, hub)

	// West reads east with another key first.
	both("-out east.key")
	shell("cp east.pub right.pub; cp west.pub east.pub") // not the key that east signs with
	both("create secret generic member-east")
	exports(t, east, "10.1.0.1")
	exports(t, west, "10.2.0.1")
	eventually(t, "the foreign key is reported", func(ctx context.Context) error {
		events, err := west.Client().CoreV1().Events(system).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		var messages []string
		for _, event := range events.Items {
			if event.InvolvedObject.Name == "member-east" && event.Reason == "MemberUnreachable" &&
				strings.Contains(event.Message, "public key") {
				return nil
			}
			messages = append(messages, event.InvolvedObject.Name+" "+event.Reason+" "+event.Message)
		}
		return fmt.Errorf("Events: %q", messages)
	})
	if got, err := addressesOf(t.Context(), west, "east"); err != nil || len(got) > 0 {
		t.Errorf("imported under a foreign key: %v, %v", got, err)
	}
	shell("cp right.pub east.pub")
	shell(page("$(jq --raw-input --slurp . east.pub)"))
	imported(t, "first, in west", west, "east", "10.1.0.1")
	imported(t, "first, in east", east, "west", "10.2.0.1")
	for _, cluster := range []*controlplane.Cluster{east, west} {
		if _, err := importOf(t.Context(), cluster, "default"); err != nil {
			t.Error(err)
		}
	}
	expectDialOut(t, east, west, hub)
	credential, err := west.Kubeconfig()
	must(t, err)
	path := filepath.Join(t.TempDir(), "kubeconfig")
	must(t, os.WriteFile(path, credential, 0o600))
	server := start(t, west, ".:PORT {\n bind 127.0.0.1\n multicluster clusterset.local {\n kubeconfig "+path+"\n }\n}\n")
	eventually(t, "an answer", func(ctx context.Context) error {
		got, err := ask(ctx, server, "web.default.svc.clusterset.local.", "A")
		if err == nil && !strings.Contains(got, "10.1.0.1") {
			err = fmt.Errorf("got %s", got)
		}
		return err
	})

	// Changes, one ConfigMap updated in place, and withdrawn.
	before := records(t, hub)
	for i := range 5 {
		added := fmt.Sprintf("10.1.0.%d", i+2)
		exports(t, east, "10.1.0.1", added)
		imported(t, "added", west, "east", "10.1.0.1", added)
		exports(t, east, "10.1.0.1")
		imported(t, "gone", west, "east", "10.1.0.1")
	}
	if after := records(t, hub); len(before) == 0 || !slices.Equal(before, after) {
		t.Errorf("the records were %v and are %v, want the same ConfigMaps", before, after)
	}

	// The documented checks.
	for _, line := range regexp.MustCompile(`(?m)^\$ (.*)$`).FindAllStringSubmatch(read(t, relayPage), -1) {
		if output := shell(line[1]); output == "" && !strings.Contains(line[1], "get events") { // nothing has failed
			t.Errorf("%s: no output", line[1])
		}
	}
	if got := shell(page("get lease clusterset-dns-member-east")); got != "hub" {
		t.Errorf("west reads east through %q, want hub", got)
	}

	// The key is replaced, and the old one is removed.
	shell(page("cat east.pub new.pub"))
	shell(page("rm new.key"))
	exports(t, east, "10.1.0.1", "10.1.0.20")
	imported(t, "after the new key", west, "east", "10.1.0.1", "10.1.0.20")
	shell("cp new.pub east.pub")
	shell(page("$(jq --raw-input --slurp . east.pub)"))
	exports(t, east, "10.1.0.21")
	imported(t, "without the old key", west, "east", "10.1.0.21")

	// The relay restarts: nothing is lost, and what changed meanwhile arrives.
	must(t, hub.APIServer().Stop(t.Context()))
	exports(t, east, "10.1.0.22")
	if got, err := addressesOf(t.Context(), west, "east"); err != nil || !slices.Equal(got, []string{"10.1.0.21"}) {
		t.Errorf("without the relay: %v, %v", got, err)
	}
	must(t, hub.APIServer().Start(t.Context()))
	imported(t, "after a restart of the relay", west, "east", "10.1.0.22")
	imported(t, "kept over a restart", east, "west", "10.2.0.1")

	// East leaves.
	shell("kubectl --context west --namespace clusterset-dns delete secret member-east")
	imported(t, "left", west, "east")
	shell(page("delete namespace clusterset-relay-east"))
}

const relayPage = root + "/docs/operate/relay.md"

// relayBlock returns the only block of the page that has a text.
func relayBlock(t *testing.T, text string) string {
	t.Helper()
	for _, match := range regexp.MustCompile("(?sm)^ *```sh\n(.*?)^ *```").FindAllStringSubmatch(read(t, relayPage), -1) {
		if strings.Contains(match[1], text) {
			return match[1]
		}
	}
	t.Fatalf("relay.md has no block with %q", text)
	return ""
}

// shellOf returns a function that runs commands of the page, with a context for each cluster.
func shellOf(t *testing.T, clusters ...*controlplane.Cluster) func(string) string {
	t.Helper()
	home := t.TempDir()
	bin := filepath.Join(home, "bin")
	must(t, os.Mkdir(bin, 0o700))
	must(t, os.Symlink(kubectl(t), filepath.Join(bin, "kubectl")))
	must(t, os.Symlink(helm(t), filepath.Join(bin, "helm")))
	checkout, err := filepath.Abs(root)
	must(t, err)
	must(t, os.Symlink(filepath.Join(checkout, "deploy"), filepath.Join(home, "deploy")))
	var files []string
	for _, cluster := range clusters {
		files = append(files, kubeconfig(t, cluster))
	}
	preamble := fmt.Sprintf("set -euo pipefail; cd %s; export PATH=%s:$PATH KUBECONFIG=%s\n", home, bin,
		strings.Join(files, ":"))
	return func(commands string) string {
		t.Helper()
		return run(t, preamble+commands, "bash", "-s")
	}
}

// controllerOf runs a controller with the rights of its account.
func controllerOf(t *testing.T, cluster *controlplane.Cluster) {
	t.Helper()
	bin, err := programs.Build(t.Context(), "cmd/clusterset-controller")
	must(t, err)
	credential, err := clusterset.WriteCredential(t.Context(), cluster, system, "clusterset-controller")
	must(t, err)
	running, err := clusterset.StartController(cluster, filepath.Join(bin, "clusterset-controller"), credential)
	must(t, err)
	t.Cleanup(func() {
		if err := errors.Join(running.Err(), running.Stop(context.Background(), time.Minute)); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("the controller of %s ends\n%s", cluster.Name(), running.LogTail(8192))
		}
	})
}

// exports has a cluster export a Service with these endpoints.
func exports(t *testing.T, cluster *controlplane.Cluster, addresses ...string) {
	t.Helper()
	endpoints := make([]string, len(addresses))
	for i, address := range addresses {
		endpoints[i] = "{conditions: {ready: true}, addresses: [" + address + "]}"
	}
	must(t, clusterset.Apply(t.Context(), cluster, []byte(`
{apiVersion: v1, kind: Service, metadata: {name: web, namespace: default},
 spec: {clusterIP: None, ports: [{name: http, port: 80}]}}
---
{apiVersion: multicluster.x-k8s.io/v1beta1, kind: ServiceExport, metadata: {name: web, namespace: default}}
---
{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, addressType: IPv4, metadata: {name: web-1, namespace: default,
 labels: {kubernetes.io/service-name: web}}, ports: [{name: http, port: 80, protocol: TCP}],
 endpoints: [`+strings.Join(endpoints, ", ")+`]}`)))
}

// imported waits until a cluster has these endpoints of a member alone, and logs how long that took.
func imported(t *testing.T, what string, cluster *controlplane.Cluster, member string, want ...string) {
	t.Helper()
	started := time.Now()
	for {
		got, err := addressesOf(t.Context(), cluster, member)
		if err == nil && slices.Equal(got, want) {
			t.Logf("%s: %v", what, time.Since(started).Round(time.Millisecond))
			return
		}
		if time.Since(started) > time.Minute {
			t.Fatalf("%s: got %v, want %v: %v", what, got, want, err)
		}
		time.Sleep(5 * time.Millisecond) //nolint:forbidigo // the pause between two looks
	}
}

// addressesOf returns the endpoints of a member that a cluster imports.
func addressesOf(ctx context.Context, cluster *controlplane.Cluster, member string) ([]string, error) {
	found, err := cluster.Client().DiscoveryV1().EndpointSlices("default").List(ctx, metav1.ListOptions{
		LabelSelector: "multicluster.kubernetes.io/source-cluster=" + member,
	})
	if err != nil {
		return nil, err
	}
	var addresses []string
	for _, slice := range found.Items {
		for _, endpoint := range slice.Endpoints {
			addresses = append(addresses, endpoint.Addresses...)
		}
	}
	slices.Sort(addresses)
	return addresses, nil
}

// records returns the ConfigMaps in the mailbox of east, by UID.
func records(t *testing.T, hub *controlplane.Cluster) []string {
	t.Helper()
	found, err := hub.Client().CoreV1().ConfigMaps(mailbox.Namespace(mailbox.DefaultPrefix, "east")).List(t.Context(),
		metav1.ListOptions{LabelSelector: "multicluster.kubernetes.io/source-cluster=east"})
	must(t, err)
	var all []string
	for _, record := range found.Items {
		all = append(all, record.Name+" "+string(record.UID))
	}
	return all
}

// expectRights: the credential of east for the relay writes the mailbox of east, reads that of west, and nothing else.
func expectRights(t *testing.T, east, hub *controlplane.Cluster) {
	t.Helper()
	secret, err := east.Client().CoreV1().Secrets(system).Get(t.Context(), "relay-hub", metav1.GetOptions{})
	must(t, err)
	config, err := clientcmd.RESTConfigFromKubeConfig(secret.Data["kubeconfig"])
	must(t, err)
	client, err := kubernetes.NewForConfig(config)
	must(t, err)
	ctx, core, dry := t.Context(), client.CoreV1(), []string{metav1.DryRunAll}
	list := func(namespace string) error {
		_, err := core.ConfigMaps(namespace).List(ctx, metav1.ListOptions{})
		return err
	}
	write := func(namespace string) error {
		_, err := core.ConfigMaps(namespace).Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "x"}},
			metav1.CreateOptions{DryRun: dry})
		return err
	}
	must(t, errors.Join(list("clusterset-relay-west"), list("clusterset-relay-east"), write("clusterset-relay-east")))
	_, secrets := core.Secrets("clusterset-relay").List(ctx, metav1.ListOptions{})
	_, namespaces := core.Namespaces().List(ctx, metav1.ListOptions{})
	for what, err := range map[string]error{
		"write to the mailbox of west":  write("clusterset-relay-west"),
		"delete in the mailbox of west": core.ConfigMaps("clusterset-relay-west").Delete(ctx, "x", metav1.DeleteOptions{}),
		"write among the accounts":      write("clusterset-relay"),
		"read among the accounts":       list("clusterset-relay"),
		"read in kube-system":           list("kube-system"),
		"read ConfigMaps everywhere":    list(""), "read Secrets": secrets, "read Namespaces": namespaces,
	} {
		if !apierrors.IsForbidden(err) {
			t.Errorf("%s: %v, want Forbidden", what, err)
		}
	}
}

// expectDialOut: no Secret of a cluster has an address of another cluster than the relay, and the relay has none.
func expectDialOut(t *testing.T, east, west, hub *controlplane.Cluster) {
	t.Helper()
	for cluster, others := range map[*controlplane.Cluster][]*controlplane.Cluster{
		east: {west}, west: {east}, hub: {east, west},
	} {
		secrets, err := cluster.Client().CoreV1().Secrets("").List(t.Context(), metav1.ListOptions{})
		must(t, err)
		for _, secret := range secrets.Items {
			for key, data := range secret.Data {
				for _, other := range others {
					if bytes.Contains(data, []byte(strings.TrimPrefix(other.URL(), "https://"))) {
						t.Errorf("%s: %s of Secret %s has the address of %s", cluster.Name(), key, secret.Name, other.Name())
					}
				}
			}
		}
	}
}
