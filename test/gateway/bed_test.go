// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterset-dns/clusterset-dns/test/clusterset"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/controlplanetest"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/programs"
	"github.com/clusterset-dns/clusterset-dns/test/datapath/sandbox"
	"github.com/clusterset-dns/clusterset-dns/test/demo/plane"
)

func TestMain(m *testing.M) { sandbox.Main(m, outside, inside) }

// outside builds missing programs.
func outside() (clean func(), err error) {
	_, err = programs.Build(context.Background(), "cmd/clusterset-controller")
	return func() {}, err
}

// inside makes all addresses of pods and Services local addresses of this machine.
func inside() error {
	if _, err := sandbox.Setup("haproxy", "ip", "nsenter"); err != nil {
		return err
	}
	return exec.Command("ip", "route", "add", "local", "10.0.0.0/8", "dev", "lo").Run()
}

var must = controlplanetest.Must

// start starts control planes that stop with the test.
func start(t *testing.T, names ...string) []*clusterset.Cluster {
	planes, stop, err := plane.Start(t.Context(), names...)
	must(t, err)
	t.Cleanup(func() { must(t, stop()) })
	return planes
}

// apply applies a file, or the files of a folder.
func apply(t *testing.T, at *clusterset.Cluster, pattern string) {
	files, err := filepath.Glob(pattern)
	must(t, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		must(t, err)
		must(t, at.Apply(t.Context(), text))
	}
}

const (
	className = "haproxy"
	// proxyAddress is not in the ranges of pods and Services.
	proxyAddress = "10.255.255.1"
)

// startGateway starts an haproxy and its controller.
func startGateway(t *testing.T, at *clusterset.Cluster, c client.Client) {
	t.Helper()
	api, err := programs.Go(t.Context(), "test/gateway", []string{"GOWORK=off"}, "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/gateway-api")
	must(t, err)
	apply(t, at, filepath.Join(api, "config/crd/standard/gateway.*.yaml"))
	controlplanetest.Eventually(t, "the CRDs to be served", func(ctx context.Context) error {
		return at.Apply(ctx, fmt.Appendf(nil,
			"apiVersion: gateway.networking.k8s.io/v1\nkind: GatewayClass\nmetadata: {name: %s}\nspec: {controllerName: %s}\n",
			className, controllerName))
	})
	proxy := &haproxy{file: filepath.Join(at.Directory(), "haproxy.cfg")}
	must(t, proxy.serve(nil))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- (&controller{client: c, proxy: proxy}).run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if t.Failed() {
			configured, _ := os.ReadFile(proxy.file)
			t.Logf("haproxy:\n%s\n%s", configured, proxy.LogTail(4096))
		}
		must(t, proxy.Kill())
	})
}

// serveEcho serves an echo server at the addresses of all pods. Its responses have the fields that the suite checks.
func serveEcho(t *testing.T, planes []*clusterset.Cluster) {
	t.Helper()
	listener, err := net.Listen("tcp", ":3000")
	must(t, err)
	server := &http.Server{Handler: http.HandlerFunc(func(response http.ResponseWriter, request *http.Request) {
		asked := request.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr).IP.String()
		for _, at := range planes {
			pods, err := at.Client().CoreV1().Pods(metav1.NamespaceAll).List(request.Context(), metav1.ListOptions{})
			if err != nil {
				http.Error(response, err.Error(), http.StatusBadGateway)
				return
			}
			for _, pod := range pods.Items {
				if pod.Status.PodIP == asked {
					response.Header().Set("Content-Type", "application/json")
					_ = json.NewEncoder(response).Encode(map[string]any{
						"path": request.RequestURI, "host": request.Host, "method": request.Method, "proto": request.Proto,
						// The suite expects the name of a ReplicaSet's pod, but the models have no ReplicaSets.
						"headers": request.Header, "namespace": pod.Namespace, "pod": pod.Name + "-0", "httpPort": "3000",
					})
					return
				}
			}
		}
		http.NotFound(response, request)
	})}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
}

// join makes two clusters members of each other, with our controllers.
func join(t *testing.T, planes ...*clusterset.Cluster) {
	folder, err := programs.Folder()
	must(t, err)
	for _, at := range planes {
		must(t, at.Install(t.Context()))
		controlplanetest.RunController(t, at, filepath.Join(folder, "clusterset-controller"))
	}
	for _, at := range planes {
		for _, other := range planes {
			if other != at {
				kubeconfig, err := other.ServiceAccountKubeconfig(t.Context(), clusterset.Namespace, "clusterset-member")
				must(t, err)
				must(t, at.Join(t.Context(), other.Name(), kubeconfig))
			}
		}
	}
}
