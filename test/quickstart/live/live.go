// SPDX-License-Identifier: Apache-2.0

// Package live starts control planes whose pods run, with a stock CoreDNS and the services of a user, for tests of how
// clusterset-dns is installed and removed. A user has the clusters in a kubeconfig and runs commands.
//
// It works in a sandbox, as the tests in test/datapath do. What is stood in for:
//
//   - The kubelets, by the package kubelet, which says what it does not do. The pods of the user's own services are played.
//   - Images: their names stand for programs, so that there is no registry.
//   - kube-proxy, for Services whose ports are those of their pods.
package live

import (
	"bytes"
	"context"
	_ "embed"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/clusterset-dns/clusterset-dns/test/controlplane"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/controlplanetest"
	"github.com/clusterset-dns/clusterset-dns/test/datapath/network"
	"github.com/clusterset-dns/clusterset-dns/test/quickstart/kubelet"
)

// StockImage is the image of the CoreDNS that the clusters have.
const StockImage = "registry.k8s.io/coredns/coredns:stock"

// Programs are what the sandbox of a test needs besides those of the user.
var Programs = []string{"nsenter", "unshare", "mount", "chroot", "sh", "nft"}

// Options say what to start.
type Options struct {
	// Clusters are their names.
	Clusters []string
	// Router is what pods are attached to: the network of this process.
	Router *network.Namespace
	// Images, Files and Addresses are as of [kubelet.Options]. StockImage must be one of them.
	Images    map[string]string
	Files     map[string]map[string]string
	Addresses func(*corev1.Pod) []netip.Addr
	// Directory is where the user's commands run.
	Directory string
	// Path are the directories of the user's programs. The system's own come after them.
	Path []string
	// Hidden is a directory that the user's commands find empty, if it is set.
	Hidden string
}

// A Cluster is a control plane whose pods run.
type Cluster struct {
	*controlplane.Cluster
	router  *network.Namespace
	kubelet *kubelet.Kubelet
	// before is what there was before the installation.
	before inventory
}

// A Bed is the clusters, and a user who has them in a kubeconfig.
type Bed struct {
	Options
	// Clusters are in the order of the options.
	Clusters    []*Cluster
	environment []string
}

//go:embed coredns.yaml
var stockDNS string

//go:embed shop.yaml
var shop string

// New starts the clusters. They stop when the test ends.
func New(t *testing.T, options Options) *Bed {
	t.Helper()
	var planned []controlplane.Options
	for _, name := range options.Clusters {
		planned = append(planned, controlplane.Options{
			Name: name, WithoutCRDs: true,
			APIServerArgs: []string{"--bind-address=0.0.0.0"}, // in a network of the test's own
		})
	}
	planes := controlplanetest.Start(t, planned...)
	b := &Bed{Options: options}
	b.user(t, planes)
	for _, plane := range planes {
		b.Clusters = append(b.Clusters, b.cluster(t, plane))
	}
	for _, c := range b.Clusters {
		for _, what := range []string{
			"kube-system deployment/coredns", "shop deployment/db", "shop statefulset/queue",
		} {
			b.Run(t, "kubectl --context "+c.Name()+" rollout status --timeout 60s --namespace "+what)
		}
		c.Remember(t)
	}
	return b
}

// Address is the ClusterIP of the Service kubernetes, at which the API server is reached by all.
func Address(plane *controlplane.Cluster) string {
	return plane.Options().ServiceCIDRs[0].Masked().Addr().Next().String()
}

// dnsAddress is that of the cluster's DNS: the tenth address of the range, by convention.
func dnsAddress(plane *controlplane.Cluster) string {
	address := plane.Options().ServiceCIDRs[0].Masked().Addr().As4()
	address[3] += 10
	return netip.AddrFrom4(address).String()
}

// addresses are those that the router was given.
var addresses = map[string]bool{}

// user gives the user a kubeconfig with all rights in all clusters.
func (b *Bed) user(t *testing.T, planes []*controlplane.Cluster) {
	t.Helper()
	home := t.TempDir()
	config := clientcmdapi.NewConfig()
	for _, plane := range planes {
		// Clusters that are started later have the same one.
		if at := Address(plane); !addresses[at] {
			must(t, b.Router.AddAddress(netip.MustParseAddr(at)))
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
		config.Clusters[name].Server = "https://" + Address(plane) + ":" + server.Port()
	}
	config.CurrentContext = planes[0].Name()
	path := filepath.Join(home, "kubeconfig")
	must(t, clientcmd.WriteToFile(*config, path))
	// What the user of this machine has set up for the tools has no say here.
	b.environment = []string{"HOME=" + home, "TMPDIR=" + home, "KUBECONFIG=" + path}
}

// cluster has kubelets play the nodes, and what a user has before the installation.
func (b *Bed) cluster(t *testing.T, plane *controlplane.Cluster) *Cluster {
	t.Helper()
	must(t, plane.Kwok().Kill())
	played, err := kubelet.Start(t.Context(), kubelet.Options{
		Cluster: plane, Router: b.Router, Directory: t.TempDir(), Images: b.Images, Files: b.Files,
		Addresses: b.Addresses, DNS: dnsAddress(plane),
		Played: []string{"registry.example.org/shop/db:1", "registry.example.org/shop/queue:1"},
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
	for _, manifest := range []string{strings.ReplaceAll(stockDNS, "clusterIP: DNS", "clusterIP: "+dnsAddress(plane)), shop} {
		path := filepath.Join(t.TempDir(), "manifest.yaml")
		must(t, os.WriteFile(path, []byte(manifest), 0o600))
		b.Run(t, "kubectl --context "+plane.Name()+" apply -f "+path)
	}
	c := &Cluster{Cluster: plane, router: b.Router, kubelet: played}
	c.proxy(t)
	return c
}

// hide puts an empty directory in the place of its first argument, and has a shell run the second.
const hide = `mount -t tmpfs hidden "$0" && exec /bin/sh -ec "$1"`

// Run runs commands with sh as the user. They must work. It returns what they wrote to standard output.
func (b *Bed) Run(t testing.TB, commands string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	started := time.Now()
	command := exec.CommandContext(ctx, "/bin/sh", "-ec", commands)
	if b.Hidden != "" {
		command = exec.CommandContext(ctx, "unshare", "--mount", "--", "/bin/sh", "-ec", hide, b.Hidden, commands)
	}
	command.Dir = b.Directory
	command.Env = append(slices.Clone(b.environment), "PATH="+strings.Join(append(b.Path, "/usr/bin", "/bin"), ":"))
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
