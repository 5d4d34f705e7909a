// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/clusterset-dns/clusterset-dns/test/controlplane/assets"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/controlplanetest"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/programs"
	"github.com/clusterset-dns/clusterset-dns/test/demo/demotest"
)

// TestKubectlOnTheModel does with kubectl what the demo on models invites users to.
func TestKubectlOnTheModel(t *testing.T) {
	must := controlplanetest.Must
	built, err := assets.Ensure(t.Context(), os.Stderr, assets.Kubectl)
	must(t, err)
	bin, err := programs.Build(t.Context(), "test/demo")
	must(t, err)
	held := demotest.Hold(t, filepath.Join(bin, "demo"))
	manifest := filepath.Join(t.TempDir(), "extra.yaml")
	must(t, os.WriteFile(manifest, []byte(`
apiVersion: v1
kind: Service
metadata: {name: extra, namespace: demo, labels: {size: small}}
spec: {selector: {app: web}, ports: [{name: http, port: 80}]}
---
apiVersion: multicluster.x-k8s.io/v1beta1
kind: ServiceExport
metadata: {name: extra, namespace: demo}
`), 0o600))
	for _, each := range []struct{ args, want string }{
		{"get serviceimports", `["10.161.`},
		{"get all", "deployment.apps/web   2/2"},
		{"get svc,po,deploy,sts,svcex,endpointslices", "serviceexport.multicluster.x-k8s.io/db"},
		{"get svcim web -o jsonpath={.spec.type}", "ClusterSetIP"},
		{"get pods -w --request-timeout=1s", "db-0"},
		{"describe serviceimport web", "The service is imported."},
		{"describe service web", "Endpoints:                10.65."},
		{"describe deployment web", "2 desired | 2 updated | 2 total | 2 available"},
		{"describe pod db-0", "Ready             True"},
		{"apply -f " + manifest, "service/extra created"},
		{"apply -f " + manifest, "serviceexport.multicluster.x-k8s.io/extra unchanged"},
		{"label service extra size=big --overwrite", "labeled"},
		{"apply -f " + manifest, "service/extra configured"},
		{"wait --for=create serviceimport/extra --timeout=1m", "condition met"},
		{"delete -f " + manifest, `serviceexport.multicluster.x-k8s.io "extra" deleted`},
		{"apply --server-side -f " + manifest, "service/extra serverside-applied"},
		{"delete -f " + manifest, `service "extra" deleted`},
		{"scale deployment web --replicas=3", "scaled"},
		{"wait --for=jsonpath={.status.readyReplicas}=3 deployment/web --timeout=1m", "condition met"},
		{"delete pod db-1", "deleted"},
		{"wait --for=condition=Ready pod/db-1 --timeout=1m", "condition met"},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		command := exec.CommandContext(ctx, built[assets.Kubectl],
			append([]string{"--context", "west", "-n", "demo"}, strings.Fields(each.args)...)...)
		command.Env = append(os.Environ(), "KUBECONFIG="+held.Config)
		out, err := command.CombinedOutput()
		cancel()
		if err != nil && !strings.Contains(each.args, " -w") || !strings.Contains(string(out), each.want) {
			t.Errorf("kubectl %s: %v, want %q in:\n%s", each.args, err, each.want, out)
		}
	}
}
