// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/clusterset-dns/clusterset-dns/controller"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/controlplanetest"
)

// auditPolicy has the API server write down every call of a service account of ours.
const auditPolicy = `
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
  - level: Metadata
    userGroups: ["system:serviceaccounts:clusterset-dns"]
  - level: Metadata
    users: ["system:serviceaccount:kube-system:clusterset-coredns"]
  - level: None
`

// unused are rights that the programs have and may not use in what this test
// has them do, by the name of the role, and why they have them.
var unused = map[string]map[call]string{
	"clusterset-controller": {
		"get about.k8s.io/clusterproperties":       "where no flag gives the id of the cluster",
		"get multicluster.x-k8s.io/serviceexports": conflict,
		"get multicluster.x-k8s.io/serviceimports": conflict,
		"get services":                        conflict,
		"get discovery.k8s.io/endpointslices": conflict,
		"patch events":                        "where the same happens again",
		"create discovery.k8s.io/endpointslices:restricted":      "OpenShift's admission asks for it",
		"update multicluster.x-k8s.io/serviceexports:finalizers": "admission OwnerReferencesPermissionEnforcement asks for it",
		"update multicluster.x-k8s.io/serviceimports:finalizers": "admission OwnerReferencesPermissionEnforcement asks for it",
	},
	"clusterset-member": {
		"get coordination.k8s.io/leases": "kubectl clusterset tries a credential with it",
	},
}

const conflict = "where somebody else writes at the same time"

// TestEveryCallIsAllowedAndEveryRightIsUsed joins two clusters whose API
// servers write down what the programs call, and compares that with the rights.
func TestEveryCallIsAllowedAndEveryRightIsUsed(t *testing.T) {
	directory := t.TempDir()
	policy := filepath.Join(directory, "policy.yaml")
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
		t.Fatal(err)
	}
	log := func(name string) string { return filepath.Join(directory, name+".log") }
	options := make([]controlplane.Options, 2)
	for i, name := range []string{"east", "west"} {
		options[i] = controlplane.Options{
			Name: name, Zones: []string{},
			APIServerArgs: []string{"--audit-policy-file=" + policy, "--audit-log-path=" + log(name), "--audit-log-mode=blocking"},
		}
	}
	clusters := controlplanetest.Start(t, options...)
	for _, cluster := range clusters {
		run(t, "", kubectl(t), "--kubeconfig", kubeconfig(t, cluster), "apply", "--server-side", "--force-conflicts",
			"-f", root+"/deploy/manifest.yaml", "-f", root+"/deploy/coredns-rbac.yaml")
		run(t, allCoreDNSRights(t), kubectl(t), "--kubeconfig", kubeconfig(t, cluster), "apply", "--server-side", "--force-conflicts", "-f", "-")
	}
	live(t, clusters[0], clusters[1])

	used := map[string]map[call]bool{}
	for _, cluster := range clusters {
		for _, made := range audited(t, log(cluster.Name())) {
			if made.ResponseStatus.Code == 403 {
				t.Errorf("%s was refused in %s: %s", made.User.Username, cluster.Name(), made.RequestURI)
			}
			name := made.User.Username[strings.LastIndex(made.User.Username, ":")+1:]
			if used[name] == nil {
				used[name] = map[call]bool{}
			}
			used[name][made.call()] = true
		}
	}
	for name, rights := range granted(t) {
		for _, right := range slices.Sorted(maps.Keys(rights)) {
			if used[name][right] || unused[name][right] != "" {
				continue
			}
			// A watch lists, too; older API servers have to be asked for a list.
			if resource, ok := strings.CutPrefix(string(right), "list "); !ok || !used[name][call("watch "+resource)] {
				t.Errorf("%s may %s, and never did", name, right)
			}
		}
		if len(used[name]) == 0 {
			t.Errorf("%s called nothing", name)
		}
	}
}

// live has the programs do all that they do, once: two clusters join, a service
// is exported, changes, conflicts, and goes; a member leaves.
func live(t *testing.T, east, west *controlplane.Cluster) {
	t.Helper()
	for _, pair := range [][2]*controlplane.Cluster{{east, west}, {west, east}} {
		here, other := pair[0], pair[1]
		credential, err := other.ServiceAccountKubeconfig(t.Context(), system, "clusterset-member")
		if err != nil {
			t.Fatal(err)
		}
		_, err = here.Client().CoreV1().Secrets(system).Create(t.Context(), &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: other.Name(), Labels: map[string]string{member.ClusterLabel: other.Name()}},
			Data:       map[string][]byte{member.KubeconfigKey: credential},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		control(t, here)
		apply(t, here, `{apiVersion: v1, kind: Namespace, metadata: {name: shop}}`)
	}
	serveSet(t, west)

	const service = `{apiVersion: v1, kind: Service, metadata: {name: web, namespace: shop}, spec: {selector: {app: web}, ports: [{name: http, port: %d}]}}`
	const export = `{apiVersion: multicluster.x-k8s.io/v1beta1, kind: ServiceExport, metadata: {name: web, namespace: shop}}`
	apply(t, east, fmt.Sprintf(service, 80)+"\n---\n"+export)
	awaitPort(t, west, 80)
	apply(t, east, fmt.Sprintf(service, 81))
	awaitPort(t, west, 81)
	apply(t, west, fmt.Sprintf(service, 82)+"\n---\n"+export)
	eventually(t, "the conflict", func(ctx context.Context) error {
		object, err := west.Dynamic().Resource(mcs("serviceexports", "v1beta1")).Namespace("shop").Get(ctx, "web", metav1.GetOptions{})
		if err == nil && !strings.Contains(fmt.Sprint(object.Object["status"]), "PortConflict") {
			err = fmt.Errorf("status %v", object.Object["status"])
		}
		return err
	})
	for _, cluster := range []*controlplane.Cluster{west, east} {
		if err := cluster.Dynamic().Resource(mcs("serviceexports", "v1beta1")).Namespace("shop").Delete(t.Context(), "web", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "the import is gone", func(ctx context.Context) error {
		_, err := west.Dynamic().Resource(mcs("serviceimports", "v1beta1")).Namespace("shop").Get(ctx, "web", metav1.GetOptions{})
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("it is there: %w", err)
		}
		return nil
	})
	// A member that leaves takes its Lease with it; one whose id is wrong is told of.
	if err := west.Client().CoreV1().Secrets(system).Delete(t.Context(), "east", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the Lease of the member is gone", func(ctx context.Context) error {
		_, err := west.Client().CoordinationV1().Leases(system).Get(ctx, "clusterset-dns-member-east", metav1.GetOptions{})
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("it is there: %w", err)
		}
		return nil
	})
}

// control runs a controller with the rights that it has in its cluster, until the test ends.
func control(t *testing.T, cluster *controlplane.Cluster) {
	t.Helper()
	credential, err := cluster.ServiceAccountKubeconfig(t.Context(), system, "clusterset-controller")
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(credential)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- controller.Run(ctx, controller.Options{Config: config, Cluster: cluster.Name(), Namespace: system, LeaderElection: true})
	}()
	t.Cleanup(func() {
		cancel()
		select {
		case err := <-done:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(patience):
			t.Errorf("the controller of %s does not stop", cluster.Name())
		}
	})
}

// serveSet runs a CoreDNS as the service account that deploy/ makes for it.
func serveSet(t *testing.T, cluster *controlplane.Cluster) {
	t.Helper()
	credential, err := cluster.ServiceAccountKubeconfig(t.Context(), "kube-system", "clusterset-coredns")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(path, credential, 0o600); err != nil {
		t.Fatal(err)
	}
	address := free(t)
	start(t, coredns(t), strings.NewReplacer("PORT", address[strings.LastIndex(address, ":"):], "FILE", path, "CLUSTER", cluster.Name()).Replace(`
.PORT {
  bind 127.0.0.1
  multicluster clusterset.local {
    kubeconfig FILE
    namespace_labels kubernetes.io/metadata.name
    groups multicluster.x-k8s.io net.gke.io
    cluster CLUSTER
    prefer zone
  }
  kubernetes cluster.local {
    kubeconfig FILE
    pods verified
    endpoint_pod_names
  }
}`))
	eventually(t, "CoreDNS answers", func(ctx context.Context) error {
		got, err := ask(ctx, address, "clusterset.local.", "SOA")
		if err == nil && !strings.Contains(got, "hostmaster") {
			err = fmt.Errorf("got %s", got)
		}
		return err
	})
}

// allCoreDNSRights are those of CoreDNS, with all that the chart gives it where it is asked to.
func allCoreDNSRights(t *testing.T) string {
	t.Helper()
	return template(t, "--show-only", "templates/coredns-rights.yaml",
		"--set", "coredns.enabled=true,coredns.readNodes=true,coredns.readGKEImports=true")
}

func apply(t *testing.T, cluster *controlplane.Cluster, text string) {
	t.Helper()
	run(t, text, kubectl(t), "--kubeconfig", kubeconfig(t, cluster), "apply", "-f", "-")
}

// awaitPort waits until the import of the service and the derived Service have that port.
func awaitPort(t *testing.T, cluster *controlplane.Cluster, port int32) {
	t.Helper()
	eventually(t, fmt.Sprintf("port %d of the import", port), func(ctx context.Context) error {
		object, err := cluster.Dynamic().Resource(mcs("serviceimports", "v1beta1")).Namespace("shop").Get(ctx, "web", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if text := fmt.Sprint(object.Object["spec"]); !strings.Contains(text, fmt.Sprintf("port:%d", port)) || !strings.Contains(text, "ips:[") {
			return fmt.Errorf("spec %s", text)
		}
		return nil
	})
}

// An event is what the audit log has of a call.
type event struct {
	Verb, RequestURI string
	User             struct{ Username string }
	ObjectRef        struct{ Resource, APIGroup, Subresource string }
	ResponseStatus   struct{ Code int }
}

func (e event) call() call {
	return newCall(e.Verb, e.ObjectRef.APIGroup, strings.TrimSuffix(e.ObjectRef.Resource+":"+e.ObjectRef.Subresource, ":"))
}

func newCall(verb, group, resource string) call {
	if group != "" {
		resource = group + "/" + resource
	}
	return call(verb + " " + resource)
}

// audited are the calls for objects in an audit log.
func audited(t *testing.T, path string) []event {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var events []event
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			t.Fatalf("%v in\n%s", err, lines.Bytes())
		}
		if e.ObjectRef.Resource != "" {
			events = append(events, e)
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return events
}

// granted are the rights of the programs, by the name of the role.
func granted(t *testing.T) map[string]map[call]bool {
	t.Helper()
	rights := map[string]map[call]bool{}
	for _, text := range []string{read(t, root+"/deploy/rbac.yaml"), allCoreDNSRights(t)} {
		for _, object := range objects(t, text) {
			if kind := object.GetKind(); kind != "ClusterRole" && kind != "Role" {
				continue
			}
			var role rbacv1.ClusterRole // a Role has the same rules
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &role); err != nil {
				t.Fatal(err)
			}
			for _, rule := range role.Rules {
				for _, resource := range rule.Resources {
					for _, verb := range rule.Verbs {
						if rights[role.Name] == nil {
							rights[role.Name] = map[call]bool{}
						}
						rights[role.Name][newCall(verb, rule.APIGroups[0], strings.Replace(resource, "/", ":", 1))] = true
					}
				}
			}
		}
	}
	return rights
}
