// SPDX-License-Identifier: Apache-2.0

package quickstart

import (
	"bytes"
	"context"
	"fmt"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/clusterset-dns/clusterset-dns/test/controlplane"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/controlplanetest"
	"github.com/clusterset-dns/clusterset-dns/test/quickstart/kubelet"
)

const (
	// registry is the one of the pages.
	registry = "registry.example.org"
	// stockImage is that of CoreDNS in testdata.
	stockImage = "registry.k8s.io/coredns/coredns:stock"
)

// A cluster is a control plane whose pods run.
type cluster struct {
	*controlplane.Cluster
	kubelet *kubelet.Kubelet
	// before is what there was before the installation.
	before inventory
}

// A bed is the clusters, and a user who has them in a kubeconfig.
type bed struct {
	east, west, north *cluster
	environment       []string
}

func newBed(t *testing.T) *bed {
	t.Helper()
	var options []controlplane.Options
	for _, name := range []string{"east", "west", "north"} {
		options = append(options, controlplane.Options{
			Name: name, WithoutCRDs: true,
			APIServerArgs: []string{"--bind-address=0.0.0.0"}, // in a network of the test's own
		})
	}
	planes := controlplanetest.Start(t, options...)
	b := &bed{}
	b.user(t, planes)
	b.east, b.west, b.north = b.cluster(t, planes[0]), b.cluster(t, planes[1]), b.cluster(t, planes[2])
	for _, c := range b.all() {
		for _, what := range []string{
			"kube-system deployment/coredns", "shop deployment/db", "shop statefulset/queue",
		} {
			b.run(t, "kubectl --context "+c.Name()+" rollout status --timeout 60s --namespace "+what)
		}
		c.before = take(t, c)
	}
	return b
}

func (b *bed) all() []*cluster { return []*cluster{b.east, b.west, b.north} }

// address is the ClusterIP of the Service kubernetes, at which the API server is reached by all.
func address(plane *controlplane.Cluster) string {
	return plane.Options().ServiceCIDRs[0].Masked().Addr().Next().String()
}

// addresses are those that the router was given.
var addresses = map[string]bool{}

// user gives the user a kubeconfig with all rights in all clusters, and the programs.
func (b *bed) user(t *testing.T, planes []*controlplane.Cluster) {
	t.Helper()
	home := t.TempDir()
	config := clientcmdapi.NewConfig()
	for _, plane := range planes {
		// Clusters that are started later have the same one.
		if at := address(plane); !addresses[at] {
			must(t, router.AddAddress(netip.MustParseAddr(at)))
			addresses[at] = true
		}
		text, err := plane.Kubeconfig()
		must(t, err)
		one, err := clientcmd.Load(text)
		must(t, err)
		name := plane.Name()
		config.Clusters[name], config.AuthInfos[name], config.Contexts[name] = one.Clusters[name], one.AuthInfos[name],
			one.Contexts[name]
		server, err := url.Parse(config.Clusters[name].Server)
		must(t, err)
		config.Clusters[name].Server = "https://" + address(plane) + ":" + server.Port()
	}
	config.CurrentContext = planes[0].Name()
	path := filepath.Join(home, "kubeconfig")
	must(t, clientcmd.WriteToFile(*config, path))
	// What the user of this machine has set up for the tools has no say here.
	b.environment = []string{
		"HOME=" + home, "TMPDIR=" + home, "KUBECONFIG=" + path,
		"PATH=" + filepath.Join(os.Getenv(programsVariable), "user") + ":/usr/bin:/bin",
	}
}

// cluster has kubelets play the nodes, and what a user has before the installation.
func (b *bed) cluster(t *testing.T, plane *controlplane.Cluster) *cluster {
	t.Helper()
	must(t, plane.Kwok().Kill())
	programs, version := os.Getenv(programsVariable), appVersion(t)
	directive, err := os.ReadFile(filepath.Join(root, "cmd/coredns/multicluster.conf"))
	must(t, err)
	played, err := kubelet.Start(t.Context(), kubelet.Options{
		Cluster: plane, Router: router, Directory: t.TempDir(),
		Images: map[string]string{
			registry + "/clusterset-dns/clusterset-controller:" +
				version: filepath.Join(programs, "images", "clusterset-controller"),
			registry + "/clusterset-dns/coredns:" + version:      filepath.Join(programs, "images", "coredns"),
			registry + "/clusterset-dns/coredns-slim:" + version: filepath.Join(programs, "slim", "coredns"),
			stockImage: filepath.Join(programs, "stock", "coredns"),
		},
		Files: map[string]map[string]string{
			registry + "/clusterset-dns/coredns:" + version: {"/etc/clusterset-dns/multicluster.conf": string(directive)},
		},
		Played: []string{registry + "/shop/db:1", registry + "/shop/queue:1"},
	})
	must(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			for name, log := range played.Logs() {
				t.Logf("%s: the log of %s ends:\n%s", plane.Name(), name, log)
			}
		}
		if err := played.Stop(); err != nil {
			t.Error(err)
		}
	})
	for _, file := range []string{"coredns", "shop"} {
		text, err := os.ReadFile(filepath.Join("testdata", file+".yaml"))
		must(t, err)
		services := plane.Options().ServiceCIDRs[0].Masked().Addr().As4()
		services[3] = 10
		manifest := strings.ReplaceAll(string(text), "clusterIP: DNS",
			fmt.Sprintf("clusterIP: %d.%d.%d.%d", services[0], services[1], services[2], services[3]))
		path := filepath.Join(t.TempDir(), file+".yaml")
		must(t, os.WriteFile(path, []byte(manifest), 0o600))
		b.run(t, "kubectl --context "+plane.Name()+" apply -f "+path)
	}
	return &cluster{Cluster: plane, kubelet: played}
}

// appVersion is the version of the programs that the chart installs.
func appVersion(t testing.TB) string {
	t.Helper()
	chart, err := os.ReadFile(filepath.Join(root, "deploy", "chart", "Chart.yaml"))
	must(t, err)
	match := regexp.MustCompile(`(?m)^appVersion: (\S+)$`).FindSubmatch(chart)
	if match == nil {
		t.Fatal("the chart has no appVersion")
	}
	return string(match[1])
}

// run runs commands with sh, in the root directory of the repository, as the user. They must work. It returns what they
// wrote to standard output.
func (b *bed) run(t testing.TB, commands string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	started := time.Now()
	command := exec.CommandContext(ctx, "/bin/sh", "-ec", commands)
	command.Dir, command.Env = root, b.environment
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	if err := command.Run(); err != nil {
		t.Fatalf("%s\n%v\n%s%s", commands, err, stdout.String(), stderr.String())
	}
	t.Logf("%s\n%s%s(%.1f s)", commands, stdout.String(), stderr.String(), time.Since(started).Seconds())
	return stdout.String()
}

// As all packages wait and fail.
var (
	eventually = controlplanetest.Eventually
	must       = controlplanetest.Must
)
