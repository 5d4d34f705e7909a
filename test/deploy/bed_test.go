// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterset-dns/clusterset-dns/test/clusterset"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/assets"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/controlplanetest"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/process"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/programs"
)

const (
	root   = "../.."
	chart  = root + "/deploy/chart"
	system = "clusterset-dns"
)

func TestMain(m *testing.M) { controlplanetest.Main(m) }

// pinned returns a function that returns the path of the helm that a module in test/tools pins.
func pinned(module string) func(testing.TB) string {
	find := sync.OnceValues(func() (string, error) {
		return assets.Helm(context.Background(), module)
	})
	return func(t testing.TB) string {
		path, err := find()
		must(t, err)
		return path
	}
}

// helm is the newest version, and helm3 the previous major version.
var helm, helm3 = pinned("helm"), pinned("helm3")

func kubectl(t testing.TB) string {
	paths, err := assets.Ensure()
	must(t, err)
	return paths[assets.Kubectl]
}

// try runs a program. It returns stdout, and an error with stderr.
func try(ctx context.Context, t testing.TB, stdin, program string, args ...string) (string, error) {
	command := exec.CommandContext(ctx, program, args...)
	command.Stdin = strings.NewReader(stdin)
	// The user's configuration of the tools must have no effect.
	home := t.TempDir()
	command.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "HELM=" + os.Getenv("HELM"), "TMPDIR=" + home}
	return process.Output(command)
}

// run is like try, but ends the test if the program fails.
func run(t testing.TB, stdin, program string, args ...string) string {
	output, err := try(t.Context(), t, stdin, program, args...)
	if err != nil {
		must(t, fmt.Errorf("%s: %w", strings.Join(args, " "), err))
	}
	return output
}

// template returns the rendered chart.
func template(t testing.TB, flags ...string) string { return templateBy(t, helm(t), flags...) }

// templateBy returns the chart as a version of Helm renders it.
func templateBy(t testing.TB, helm string, flags ...string) string {
	return run(t, "", helm, append([]string{"template", "clusterset-dns", chart, "--namespace", system, "--set", "clusterId=fromClusterProperty"}, flags...)...)
}

// objects parses a YAML stream.
func objects(t testing.TB, text string) []*unstructured.Unstructured {
	all, err := clusterset.Objects([]byte(text))
	must(t, err)
	return all
}

// ctl runs kubectl as an administrator of a cluster.
func ctl(t testing.TB, cluster *controlplane.Cluster, stdin string, args ...string) string {
	return run(t, stdin, kubectl(t), append([]string{"--kubeconfig", cluster.AdminKubeconfig()}, args...)...)
}

// apply applies objects to a cluster.
func apply(t testing.TB, cluster *controlplane.Cluster, objects string) {
	ctl(t, cluster, objects, "apply", "--server-side", "-f", "-")
}

// controllerOf starts a controller with the rights of its account in a cluster, until the test ends.
func controllerOf(t testing.TB, cluster *controlplane.Cluster, flags ...string) *clusterset.Program {
	folder, err := programs.Build(t.Context(), "cmd/clusterset-controller")
	must(t, err)
	return controlplanetest.RunController(t, cluster.Cluster, filepath.Join(folder, "clusterset-controller"), flags...)
}

// kubectlClusterset runs a command of the plugin, with a context for each cluster.
func kubectlClusterset(t testing.TB, clusters []*controlplane.Cluster, command string) string {
	bin, err := programs.Build(t.Context(), "cmd/kubectl-clusterset")
	must(t, err)
	var files []string
	for _, cluster := range clusters {
		files = append(files, cluster.AdminKubeconfig())
	}
	return run(t, "", "sh", "-ec", "KUBECONFIG="+strings.Join(files, ":")+" "+filepath.Join(bin, "kubectl-clusterset")+" "+command)
}

// publish makes a cluster export a Service with this endpoint.
func publish(t *testing.T, cluster *controlplane.Cluster, address string) {
	must(t, cluster.Apply(t.Context(), []byte(`
{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {clusterIP: None, ports: [{name: http, port: 80}]}}
---
{apiVersion: multicluster.x-k8s.io/v1beta1, kind: ServiceExport, metadata: {name: web}}
---
{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, addressType: IPv4, metadata: {name: web-1,
 labels: {kubernetes.io/service-name: web}}, ports: [{name: http, port: 80, protocol: TCP}],
 endpoints: [{conditions: {ready: true}, addresses: [`+address+`]}]}`)))
}

// reads waits until a cluster has exactly this endpoint of west.
func reads(t *testing.T, cluster *controlplane.Cluster, address string) {
	eventually(t, "the endpoint of west", func(ctx context.Context) error {
		got, err := clusterset.Imported(ctx, cluster.Client(), "default", "web")
		if err == nil && !slices.Equal(got, []string{"west/" + address}) {
			err = fmt.Errorf("got %v, want %s", got, address)
		}
		return err
	})
}

func written(t *testing.T, folder, name, text string) string {
	path := filepath.Join(folder, name)
	must(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// The usual functions to wait and fail.
var (
	documented = controlplanetest.Documented
	eventually = controlplanetest.Eventually
	must       = controlplanetest.Must
)
