// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterset-dns/clusterset-dns/test/clusterset"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/controlplanetest"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/programs"
	"github.com/clusterset-dns/clusterset-dns/test/datapath/network"
	"github.com/clusterset-dns/clusterset-dns/test/datapath/sandbox"
	"github.com/clusterset-dns/clusterset-dns/test/demo/plane"
)

// Variables that tell the test inside the sandbox where things are that the one outside has built or fetched.
const (
	programsVariable = "CLUSTERSET_DNS_PROGRAMS"
	crdsVariable     = "CLUSTERSET_DNS_GATEWAY_CRDS"
)

func TestMain(m *testing.M) { sandbox.Main(m, outside, inside) }

// outside builds what is missing.
func outside() (clean func(), err error) {
	ctx := context.Background()
	folder, err := programs.Build(ctx, "cmd/clusterset-controller")
	if err != nil {
		return nil, err
	}
	api, err := programs.Go(ctx, "test/gateway", []string{"GOWORK=off"}, "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/gateway-api")
	if err != nil {
		return nil, err
	}
	return func() {}, errors.Join(os.Setenv(programsVariable, folder),
		os.Setenv(crdsVariable, filepath.Join(api, "config/crd/standard/gateway.*.yaml")))
}

// inside makes all addresses of pods and Services addresses of this machine.
func inside() error {
	if err := sandbox.Setup("haproxy", "ip", "nsenter"); err != nil {
		return err
	}
	if _, err := network.Own(); err != nil {
		return err
	}
	return exec.Command("ip", "route", "add", "local", "10.0.0.0/8", "dev", "lo").Run()
}

var must = controlplanetest.Must

// start starts control planes that stop with the test.
func start(t *testing.T, names ...string) []*plane.Plane {
	planes, stop, err := plane.Start(t.Context(), names...)
	must(t, err)
	t.Cleanup(func() { must(t, stop()) })
	return planes
}

// apply applies the files of a folder, or a file.
func apply(t *testing.T, at *plane.Plane, pattern string) {
	files, err := filepath.Glob(pattern)
	must(t, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		must(t, err)
		must(t, clusterset.Apply(t.Context(), at, text))
	}
}

const (
	className = "haproxy"
	// proxyAddress is no address of a pod or Service.
	proxyAddress = "10.255.255.1"
)

// startGateway starts an haproxy and its controller.
func startGateway(t *testing.T, at *plane.Plane, c client.Client) {
	t.Helper()
	apply(t, at, os.Getenv(crdsVariable))
	controlplanetest.Eventually(t, "the CRDs to be served", func(ctx context.Context) error {
		return clusterset.Apply(ctx, at, fmt.Appendf(nil,
			"apiVersion: gateway.networking.k8s.io/v1\nkind: GatewayClass\nmetadata: {name: %s}\nspec: {controllerName: %s}\n",
			className, controllerName))
	})
	proxy := &haproxy{file: filepath.Join(at.Directory(), "haproxy.cfg"), address: proxyAddress}
	must(t, proxy.serve(nil))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- (&controller{client: c, address: proxyAddress, serve: proxy.serve}).run(ctx) }()
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

// serveEcho has an echo server at the address of each pod that has the image of one.
func serveEcho(t *testing.T, at *plane.Plane) {
	t.Helper()
	servers := map[string]*http.Server{}
	update := func(object any) {
		pod := object.(*corev1.Pod)
		if pod.Status.PodIP == "" || servers[pod.Status.PodIP] != nil || !strings.Contains(pod.Spec.Containers[0].Image, "/echo-basic:") {
			return
		}
		listener, err := net.Listen("tcp", net.JoinHostPort(pod.Status.PodIP, "3000"))
		if err != nil {
			t.Errorf("pod %s: %v", pod.Name, err)
			return
		}
		server := &http.Server{Handler: echo(pod)}
		servers[pod.Status.PodIP] = server
		go func() { _ = server.Serve(listener) }()
	}
	factory := informers.NewSharedInformerFactory(at.Client(), 0)
	_, err := factory.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: update, UpdateFunc: func(_, object any) { update(object) },
	})
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	factory.Start(ctx.Done())
	t.Cleanup(func() {
		cancel()
		factory.Shutdown()
		for _, server := range servers {
			_ = server.Close()
		}
	})
}

// echo answers as the suite's own server does, as far as the tests look.
func echo(pod *corev1.Pod) http.HandlerFunc {
	return func(response http.ResponseWriter, request *http.Request) {
		response.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(response).Encode(map[string]any{
			"path": request.RequestURI, "host": request.Host, "method": request.Method, "proto": request.Proto,
			// A ReplicaSet, which the models leave out, would be in the name of the pod.
			"headers": request.Header, "namespace": pod.Namespace, "pod": pod.Name + "-0", "httpPort": "3000",
		})
	}
}

// join has two clusters run our controllers and read each other.
func join(t *testing.T, planes ...*plane.Plane) {
	for _, at := range planes {
		must(t, clusterset.Install(t.Context(), at))
		controlplanetest.RunController(t, at, filepath.Join(os.Getenv(programsVariable), "clusterset-controller"))
	}
	for _, at := range planes {
		for _, other := range planes {
			if other != at {
				kubeconfig, err := other.ServiceAccountKubeconfig(t.Context(), clusterset.Namespace, "clusterset-member")
				must(t, err)
				must(t, clusterset.Join(t.Context(), at, other.Name(), kubeconfig))
			}
		}
	}
}
