// SPDX-License-Identifier: Apache-2.0

package quickstart

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/clusterset-dns/clusterset-dns/test/controlplane"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/controlplanetest"
	"github.com/clusterset-dns/clusterset-dns/test/datapath/network"
	"github.com/clusterset-dns/clusterset-dns/test/kubelet"
	"github.com/clusterset-dns/clusterset-dns/test/pki"
)

// registry is the registry of the pages, and stockImage the image of the CoreDNS that the clusters have before the installation.
const registry, stockImage = "registry.example.org", "registry.k8s.io/coredns/coredns:stock"

// A cluster is a control plane with running pods.
type cluster struct {
	*controlplane.Cluster
	// before has the objects from before the installation.
	before inventory
	nodes  *network.Namespace // the network to which pods are attached
}

// A bed has the clusters of the pages, and a user with the files of two releases and a kubeconfig for all clusters.
type bed struct {
	clusters          []*cluster
	east, west, north *cluster
	servers           map[string]string // URLs of the API servers by cluster
	before, after     release
	programs          string            // of the user, without kubectl-clusterset
	images            map[string]string // as of kubelet.Options
	// directory is the working directory of the user's commands, and path has the directories of the user's programs,
	// before the system's.
	directory   string
	path        []string
	environment []string
}

//go:embed testdata/coredns.yaml
var stockDNS string

//go:embed testdata/shop.yaml
var shop string

func newBed(t *testing.T) *bed {
	folder := os.Getenv(folderVariable)
	b := &bed{
		before: open(t, filepath.Join(folder, "before")), after: open(t, filepath.Join(folder, "after")),
		programs: filepath.Join(folder, "user"), servers: map[string]string{},
		images: map[string]string{
			stockImage:              filepath.Join(folder, "stock", "coredns"),
			registry + "/shop/db:1": "", registry + "/shop/queue:1": "",
		},
		directory: t.TempDir(), path: []string{filepath.Join(folder, "user")},
	}
	for _, r := range []release{b.before, b.after} {
		controller, coredns := r.unpack(t, "clusterset-controller"), r.unpack(t, "coredns")
		for name, program := range map[string]string{"clusterset-controller": controller, "coredns": coredns, "coredns-slim": coredns} {
			b.images[r.image(name)], b.images[mirrored(r.image(name))] = program, program
		}
	}
	var planned []controlplane.Options
	for _, name := range []string{"east", "west", "north"} {
		arguments := []string{"--bind-address=0.0.0.0"} // the test has its own network
		if name == "north" {
			arguments = append(arguments, "--service-account-max-token-expiration=1h")
		}
		planned = append(planned, controlplane.Options{
			Name: name, Zones: []string{name + "-a", name + "-b"}, WithoutCRDs: true, APIServerArgs: arguments,
		})
	}
	planes := controlplanetest.Start(t, planned...)
	b.user(t, planes)
	for _, plane := range planes {
		b.clusters = append(b.clusters, b.cluster(t, plane))
	}
	for _, c := range b.clusters {
		for _, what := range []string{
			"kube-system deployment/coredns", "shop deployment/db", "shop statefulset/queue",
		} {
			b.run(t, "kubectl --context "+c.Name()+" rollout status --timeout 60s --namespace "+what)
		}
		c.remember(t)
	}
	b.east, b.west, b.north = b.clusters[0], b.clusters[1], b.clusters[2]
	return b
}

// user creates the user's kubeconfig, with all rights in all clusters.
func (b *bed) user(t *testing.T, planes []*controlplane.Cluster) {
	home := t.TempDir()
	config := clientcmdapi.NewConfig()
	for _, plane := range planes {
		must(t, router.AddAddress(netip.MustParseAddr(plane.ServiceIP(1))))
		is, name := plane.Config(), plane.Name()
		b.servers[name] = strings.Replace(is.Host, "127.0.0.1", plane.ServiceIP(1), 1)
		pki.Add(config, name, b.servers[name], is.CAData, is.BearerToken)
	}
	config.CurrentContext = planes[0].Name()
	path := filepath.Join(home, "kubeconfig")
	must(t, clientcmd.WriteToFile(*config, path))
	// The user's configuration on this machine must have no effect on the tools.
	b.environment = []string{"HOME=" + home, "TMPDIR=" + home, "KUBECONFIG=" + path}
}

// cluster starts kubelets for the nodes, and creates the objects that a user has before the installation.
func (b *bed) cluster(t *testing.T, plane *controlplane.Cluster) *cluster {
	directory := t.TempDir()
	t.Cleanup(func() {
		if t.Failed() {
			logs, _ := exec.Command("sh", "-c", "tail -c 4096 "+directory+"/*.log").CombinedOutput()
			t.Logf("the logs of the pods of %s end:\n%s", plane.Name(), logs)
		}
	})
	c := &cluster{Cluster: plane}
	c.connect(t)
	kubelet.Start(t, kubelet.Options{
		Cluster: plane, Router: c.nodes, Directory: directory, Images: b.images, DNS: plane.ServiceIP(10),
	})
	b.apply(t, plane.Name(), strings.ReplaceAll(stockDNS, "clusterIP: DNS", "clusterIP: "+plane.ServiceIP(10)))
	b.apply(t, plane.Name(), shop)
	return c
}

// run runs commands with sh as the user, and returns their standard output. The test ends if they fail.
func (b *bed) run(t testing.TB, commands string) string {
	stdout, log := b.quietly(t, commands)
	t.Log(log)
	return stdout
}

// apply applies a manifest in the cluster of a context.
func (b *bed) apply(t testing.TB, context, manifest string) {
	b.run(t, "kubectl --context "+context+" apply -f - <<'EOF'\n"+manifest+"\nEOF")
}

// quietly is like run, but also returns the log of the commands.
func (b *bed) quietly(t testing.TB, commands string) (output, log string) {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	started := time.Now()
	command := exec.CommandContext(ctx, "/bin/sh", "-ec", commands)
	command.Dir = b.directory
	command.Env = append(slices.Clone(b.environment), "PATH="+strings.Join(append(b.path, "/usr/bin", "/bin"), ":"))
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	if err := command.Run(); err != nil {
		must(t, fmt.Errorf("%s\n%w\n%s%s", commands, err, stdout.String(), stderr.String()))
	}
	return stdout.String(), fmt.Sprintf("%s\n%s%s(%.1f s)", commands, stdout.String(), stderr.String(), time.Since(started).Seconds())
}

// mirrored returns the name of an image in the registry of the pages.
func mirrored(image string) string { return strings.Replace(image, "ghcr.io", registry, 1) }

// use verifies a release, and adds its kubectl-clusterset to the path.
func (b *bed) use(t *testing.T, r release) {
	t.Helper()
	programs := filepath.Join(filepath.Dir(b.programs), r.version)
	must(t, os.Mkdir(programs, 0o700))
	b.run(t, "! command -v go && test -z \"$(ls -A)\"")
	b.run(t, fmt.Sprintf("cd %s && sha256sum --check checksums.txt && tar -xzf %s -C %s", r.directory, r.archive("kubectl-clusterset"), programs))
	// Every file has a checksum. The checksum of the archive is the one in krew's manifest.
	b.run(t, fmt.Sprintf("cd %s && for file in *; do test -d $file || test $file = checksums.txt || "+
		"grep -q \"  $file\\$\" checksums.txt || exit 1; done && grep -A1 %s clusterset.yaml | grep $(sha256sum <%[2]s | cut -d' ' -f1)",
		r.directory, r.archive("kubectl-clusterset")))
	b.path = []string{programs, b.programs}
	if client := b.run(t, "kubectl clusterset --version"); !strings.Contains(client, r.version) {
		t.Fatalf("the program of release %s says it is %s", r.version, client)
	}
}

// The usual functions to wait and fail.
var (
	eventually = controlplanetest.Eventually
	must       = controlplanetest.Must
)
