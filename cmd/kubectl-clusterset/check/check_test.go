// SPDX-License-Identifier: Apache-2.0

package check

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/dns"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/facts"
	"github.com/clusterset-dns/clusterset-dns/controller/accept"
	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/controller/memberstate"
	"github.com/clusterset-dns/clusterset-dns/controller/merge"
)

var now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// newCluster is one in which nothing is wrong.
func newCluster(id string, pods, services string) *Cluster {
	heard := metav1.NewMicroTime(now.Add(-3 * time.Second))
	return &Cluster{
		Context: id, Server: "https://" + id + ".example",
		Facts: &facts.Facts{
			Context: id, ID: id, UID: "uid-of-" + id, System: "clusterset-dns", Now: now, Version: "v1.37.1",
			MCSVersion: "v1beta1",
			Namespaces: map[string]*corev1.Namespace{"clusterset-dns": {}},
			Heartbeat:  &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{HolderIdentity: &id, RenewTime: &heard}},
		},
		Nodes: []corev1.Node{{
			ObjectMeta: metav1.ObjectMeta{Name: "node", Labels: map[string]string{corev1.LabelTopologyZone: "a"}},
			Spec:       corev1.NodeSpec{PodCIDRs: []string{pods}},
			Status:     corev1.NodeStatus{NodeInfo: corev1.NodeSystemInfo{KubeletVersion: "v1.37.1"}},
		}},
		ServiceCIDRs: []netip.Prefix{netip.MustParsePrefix(services)},
		Apex:         dns.Answer{Rcode: "NOERROR", Records: []string{"soa"}},
	}
}

// newSet is two clusters that are joined, and in which nothing is wrong but what
// is changed.
func newSet(change func(east, west *Cluster)) *Set {
	east, west := newCluster("east", "10.64.0.0/24", "10.160.0.0/16"),
		newCluster("west", "10.65.0.0/24", "10.161.0.0/16")
	for _, pair := range [][2]*Cluster{{east, west}, {west, east}} {
		pair[0].Members = []facts.Member{{
			ID:     pair[1].ID,
			Secret: &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "member-" + pair[1].ID}},
			Lease:  &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{memberstate.StateAnnotation: "fresh"}}},
		}}
	}
	change(east, west)
	return &Set{Clusters: []*Cluster{east, west}, Zone: "clusterset.local"}
}

func TestChecks(t *testing.T) {
	stale := map[string]string{memberstate.StateAnnotation: "stale"}
	for name, test := range map[string]struct {
		change func(east, west *Cluster)
		want   string // check of a context, what, and what fixes it
	}{
		"unreachable": {
			func(_, west *Cluster) { west.Facts, west.Unreachable = nil, errors.New("no route to host") },
			"failed api-reachable west: The API server is unreachable: no route to host > Make sure that the API server at https://west.example is up, or correct the address and credentials of context west in your kubeconfig.",
		},
		"old Kubernetes": {
			func(east, _ *Cluster) { east.Version = "v1.29.3+k3s1" },
			"failed api-version east: Kubernetes v1.29.3+k3s1 is not supported. > Upgrade Kubernetes to 1.30 or newer.",
		},
		"one cluster twice": {
			func(east, west *Cluster) { west.UID = east.UID },
			"failed distinct west: Context east refers to the same cluster. > Name each cluster once in --contexts, or point context west to another cluster in your kubeconfig.",
		},
		"one id twice": {
			func(_, west *Cluster) { west.ID = "east" },
			"failed cluster-id east: The cluster of context west has the id east, too. > helm upgrade clusterset-dns deploy/chart --kube-context east --namespace clusterset-dns --reset-then-reuse-values --set clusterId=<new id>\n" +
				"failed cluster-id west: The cluster of context east has the id east, too. > helm upgrade clusterset-dns deploy/chart --kube-context west --namespace clusterset-dns --reset-then-reuse-values --set clusterId=<new id>",
		},
		"clocks": {
			func(_, west *Cluster) { west.Ahead = time.Minute },
			"warning clock west: The clock of the API server is 1m0s ahead of that of east, so new tokens may not be valid there yet. > Correct the clock of one of the two control planes.",
		},
		"no controller": {
			func(_, west *Cluster) { west.Now = now.Add(time.Minute) },
			"failed controller west: The controller has not renewed its heartbeat for 1m3s. > Start clusterset-controller in namespace clusterset-dns. If it runs, find the cause in its logs: `kubectl --context west -n clusterset-dns logs -l app.kubernetes.io/component=controller --prefix --tail=200`.",
		},
		"never a controller": {
			func(_, west *Cluster) { west.Heartbeat = nil },
			"failed controller west: The controller has never written a heartbeat to namespace clusterset-dns. > Start clusterset-controller in namespace clusterset-dns. If it runs, find the cause in its logs: `kubectl --context west -n clusterset-dns logs -l app.kubernetes.io/component=controller --prefix --tail=200`.",
		},
		"another namespace of the controller": {
			func(_, west *Cluster) { west.System = "mcs" },
			"failed namespace west: Namespace mcs does not exist: the controller is not installed, or runs in another namespace (--system-namespace). > helm install clusterset-dns deploy/chart --kube-context west --namespace mcs --create-namespace --set clusterId=<id> --set image.registry=<registry>",
		},
		"without a checkout": {
			func(_, west *Cluster) { west.Release, west.System = "0.1.0", "mcs" },
			"failed namespace west: Namespace mcs does not exist: the controller is not installed, or runs in another namespace (--system-namespace). > helm install clusterset-dns oci://ghcr.io/clusterset-dns/charts/clusterset-dns --version 0.1.0 --kube-context west --namespace mcs --create-namespace --set clusterId=<id>",
		},
		"not joined": {
			func(east, _ *Cluster) { east.Members = nil },
			"failed joined east: There is no credential of west, so nothing is imported from it. > kubectl clusterset join east west",
		},
		"a limit of cluster IPs": {
			func(east, _ *Cluster) {
				east.Imports = append(east.Imports, v1beta1.ServiceImport{
					ObjectMeta: metav1.ObjectMeta{
						Namespace: "shop", Name: "db",
						Labels: map[string]string{export.LabelManagedBy: export.Manager},
					},
					Status: v1beta1.ServiceImportStatus{Conditions: []metav1.Condition{{
						Type: string(v1beta1.ServiceImportConditionReady), Status: metav1.ConditionFalse,
						Reason: merge.ReasonClusterIPLimit, Message: "No IP is left.",
					}}},
				})
			},
			"failed imports-ready east: Import shop/db is not ready: No IP is left. > Export fewer services as ClusterSetIP.",
		},
		"an ended credential": {
			func(east, _ *Cluster) { east.Members[0].Expires = now.Add(-time.Hour) },
			"failed credential-lasts east: The credential of west expired 1h0m0s ago, so its changes are not imported. > kubectl clusterset join east west",
		},
		"a credential that ends": {
			func(east, _ *Cluster) { east.Members[0].Expires = now.Add(48 * time.Hour) },
			"warning credential-lasts east: The credential of west expires in 48h0m0s, and was not renewed. > kubectl clusterset join east west",
		},
		"a credential of a short life": {
			func(east, _ *Cluster) {
				east.Members[0].Issued, east.Members[0].Expires = now.Add(-time.Hour), now.Add(time.Hour)
			},
			"",
		},
		"one that ends": {
			func(east, _ *Cluster) {
				east.Members[0].Issued, east.Members[0].Expires = now.Add(-5*time.Hour), now.Add(time.Hour)
			},
			"warning credential-lasts east: The credential of west expires in 1h0m0s, and was not renewed. > kubectl clusterset join east west",
		},
		"a silent member without a context": {
			func(east, west *Cluster) {
				heard := metav1.NewMicroTime(now.Add(-time.Hour))
				east.Members[0].ID = "south"
				east.Members[0].Lease = &coordinationv1.Lease{
					ObjectMeta: metav1.ObjectMeta{Annotations: stale},
					Spec:       coordinationv1.LeaseSpec{RenewTime: &heard},
				}
				east.SecretsUnseen = errors.New("forbidden")
			},
			"failed member-fresh east: south is stale: its last heartbeat arrived 1h0m0s ago. > Make sure that the API server and the controller of south run, and that east can reach them. To diagnose them: `kubectl clusterset check --contexts <context of south>`.",
		},
		"a member that was never heard": {
			func(east, _ *Cluster) {
				east.Members[0].Lease = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Annotations: stale}}
			},
			"failed member-fresh east: west is stale: no heartbeat has ever arrived. > Make sure that the API server and the controller of west run, and that east can reach them. To diagnose them: `kubectl clusterset check --contexts west`.",
		},
		"a member that is held": {
			func(east, _ *Cluster) {
				east.Members[0].Lease.Annotations = stale
				east.Members[0].Lease.Spec.RenewTime = &metav1.MicroTime{Time: now}
				east.Members[0].Events = []corev1.Event{{
					Type: "Warning", Reason: memberstate.EventMemberQuarantined,
					Message: "Cluster west is another one than before: until the annotation clusterset-dns.github.io/confirm of this Secret is 0123-4567",
				}}
			},
			"failed member-quarantined east: Cluster west is another one than before: until the annotation clusterset-dns.github.io/confirm of this Secret is 0123-4567. > Verify the exports of the member: `kubectl --context west get serviceexports -A`. If they are correct, confirm them: `kubectl --context east -n clusterset-dns annotate secret member-west clusterset-dns.github.io/confirm=0123-4567 --overwrite`.",
		},
		"a member that is held, and nothing to confirm": {
			func(east, _ *Cluster) {
				east.Members[0].Lease.Annotations = stale
				east.Members[0].Events = []corev1.Event{{
					Type: "Warning", Reason: memberstate.EventMemberQuarantined,
					Message: "Cluster west has another id in its heartbeat: delete the Secret if the cluster left the set",
				}}
			},
			"failed member-quarantined east: Cluster west has another id in its heartbeat: delete the Secret if the cluster left the set. > kubectl clusterset join east west",
		},
		"a member of another set": {
			func(east, _ *Cluster) {
				east.Members[0].Lease.Annotations = stale
				east.Members[0].Events = []corev1.Event{{
					Type: "Warning", Reason: memberstate.EventMemberQuarantined,
					Message: "Cluster west is of another cluster set: its ClusterProperty clusterset.k8s.io names none",
				}}
			},
			"failed member-quarantined east: Cluster west is of another cluster set: its ClusterProperty clusterset.k8s.io names none. > Add a set of one list to the other: `kubectl --context east patch clusterproperty clusterset.k8s.io --type merge -p '{\"spec\":{\"value\":\"<current list>,<cluster set>\"}}'`, or `kubectl --context west patch clusterproperty clusterset.k8s.io --type merge -p '{\"spec\":{\"value\":\"<current list>,<cluster set>\"}}'`.",
		},
		"pods that are not reached": {
			func(east, _ *Cluster) {
				east.Members[0].Lease.Annotations = map[string]string{
					memberstate.StateAnnotation: "stale", memberstate.PathAnnotation: "unreachable",
				}
				east.Members[0].Lease.Spec.RenewTime = &metav1.MicroTime{Time: now}
			},
			"failed pods-reached east: Connections from east to the pods of west fail: its endpoints are used only if no other cluster has a ready endpoint. > kubectl clusterset test connectivity --contexts east,west",
		},
		"pods that are not reached, and no heartbeats": {
			func(east, _ *Cluster) {
				east.Members[0].Lease.Annotations = map[string]string{
					memberstate.StateAnnotation: "stale", memberstate.PathAnnotation: "unreachable",
				}
				east.Members[0].Lease.Spec.RenewTime = &metav1.MicroTime{Time: now.Add(-time.Minute)}
			},
			"failed member-fresh east: west is stale: its last heartbeat arrived 1m0s ago. > Make sure that the API server and the controller of west run, and that east can reach them. To diagnose them: `kubectl clusterset check --contexts west`.\n" +
				"failed pods-reached east: Connections from east to the pods of west fail: its endpoints are used only if no other cluster has a ready endpoint. > kubectl clusterset test connectivity --contexts east,west",
		},
		"pods of no member are reached": {
			func(east, _ *Cluster) {
				east.Members[0].Lease.Annotations = map[string]string{memberstate.PathAnnotation: "unproven"}
			},
			"failed pods-reached east: Connections from east to the pods of west fail, as to those of all members: the pod network of east is probably at fault. > kubectl clusterset test connectivity --contexts east,west",
		},
		"a canary that never answered": {
			func(east, west *Cluster) {
				for _, c := range []*Cluster{east, west} {
					c.Heartbeat = c.Heartbeat.DeepCopy()
					c.Heartbeat.Spec.RenewTime = &metav1.MicroTime{Time: now}
					metav1.SetMetaDataAnnotation(&c.Heartbeat.ObjectMeta, member.HeartbeatCanariesAnnotation,
						"10.1.0.1:8081=a,10.1.0.2:8081")
				}
				east.Members[0].Lease.Spec.RenewTime = &metav1.MicroTime{Time: now}
				west.Members[0].Lease.Annotations[memberstate.PathAnnotation] = "reachable"
			},
			"warning pods-reached east: No canary of west (10.1.0.1:8081, 10.1.0.2:8081) has answered east yet, so that failing connections to its pods are not noticed. Allow connections between the controllers. > kubectl clusterset test connectivity --contexts east,west",
		},
		"overlapping pods": {
			func(_, west *Cluster) { west.Nodes[0].Spec.PodCIDRs = []string{"10.64.0.128/25"} },
			"failed pod-ranges east: Its pod range 10.64.0.0/24 (spec.podCIDRs of the nodes) overlaps 10.64.0.128/25 of west, so their pods cannot reach each other. Ignore this if your CNI assigns other ranges. > Give one of the two clusters another pod range; nodes keep their ranges, so this takes new nodes.\n" +
				"failed pod-ranges west: Its pod range 10.64.0.128/25 (spec.podCIDRs of the nodes) overlaps 10.64.0.0/24 of east, so their pods cannot reach each other. Ignore this if your CNI assigns other ranges. > Give one of the two clusters another pod range; nodes keep their ranges, so this takes new nodes.",
		},
		"pods where another has Services": {
			func(_, west *Cluster) { west.ServiceCIDRs = prefixes([]string{"10.64.0.0/16"}) },
			"failed service-ranges east: Its pod range 10.64.0.0/24 (spec.podCIDRs of the nodes) overlaps the Service range 10.64.0.0/16 of west, which cannot reach these pods. Ignore this if your CNI assigns other ranges. > Change one of the two ranges; the Service range is in the ServiceCIDRs.",
		},
		"an address that the controller does not reach": {
			func(east, _ *Cluster) {
				east.Members[0].Credential.Config = &rest.Config{Host: "https://west.example"}
				east.Members[0].Events = []corev1.Event{{
					Type: "Warning", Reason: memberstate.EventMemberUnreachable,
					Message: "no route to host",
				}}
			},
			"failed member-reachable east: The controller cannot read west: no route to host. > kubectl clusterset join east west --server west=<address of the API server of west as east reaches it>",
		},
		"a member that failed repeatedly": {
			func(east, _ *Cluster) {
				east.Members[0].Lease.Annotations = stale
				east.Members[0].Lease.Spec.RenewTime = &metav1.MicroTime{Time: now}
				east.Members[0].Events = []corev1.Event{{
					Type: "Warning", Reason: memberstate.EventMemberStale,
					Message: "Cluster west failed repeatedly: its endpoints stay demoted",
				}}
			},
			"failed member-fresh east: west is stale: its last heartbeat arrived 0s ago. > Wait until its heartbeats have arrived for a while without a gap.",
		},
		"an id that is none": {
			func(_, west *Cluster) { west.ID = "No" },
			"failed cluster-id west: cluster id \"No\": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?') > helm upgrade clusterset-dns deploy/chart --kube-context west --namespace clusterset-dns --reset-then-reuse-values --set clusterId=<new id>\n" +
				"failed joined east: There is no credential of No, so nothing is imported from it. > kubectl clusterset join east west",
		},
		"a node without a zone, and nobody asks": {
			func(east, _ *Cluster) { east.Nodes[0].Labels = nil },
			"",
		},
		"a node without a zone, and DNS asks": {
			func(east, _ *Cluster) {
				east.Nodes[0].Labels, east.Corefile = nil,
					". {\n multicluster clusterset.local {\n cluster east\n prefer zone\n }\n}"
			},
			"warning zones east: Node node has no label topology.kubernetes.io/zone, so its clients do not prefer near endpoints, although the Corefile has `prefer zone`. > kubectl --context east label node node topology.kubernetes.io/zone=<zone of the node>",
		},
		"a preference without effect": {
			func(east, _ *Cluster) {
				east.Imports = []v1beta1.ServiceImport{importWith(merge.ConditionPreferCluster, merge.ReasonUnknownPreference, "No preference.")}
			},
			"warning preferences east: shop/db: No preference. > helm upgrade clusterset-dns deploy/chart --kube-context east --namespace clusterset-dns --reset-then-reuse-values --set controller.prefer=none",
		},
		"a rank that is not valid": {
			func(east, _ *Cluster) {
				m := &east.Members[0]
				m.Rank, m.Refused, m.Invalid = member.LastRank, errors.New("no rank"), member.RankAnnotation
			},
			"failed credential-usable east: The controller rejects Secret member-west: no rank. > kubectl --context east -n clusterset-dns annotate secret member-west 'clusterset-dns.github.io/rank=<integer from -1000 to 1000>' --overwrite",
		},
		"ranges that are not valid": {
			func(east, _ *Cluster) {
				east.Members[0].Refused, east.Members[0].Invalid = errors.New("no ranges"), member.CIDRsAnnotation
			},
			"failed credential-usable east: The controller rejects Secret member-west: no ranges. > kubectl --context east -n clusterset-dns annotate secret member-west 'clusterset-dns.github.io/cidrs=<ranges of its pods>' --overwrite",
		},
		"patterns that are not valid": {
			func(east, _ *Cluster) {
				east.Members[0].Refused, east.Members[0].Invalid = errors.New("no patterns"), accept.Annotation
				east.Members[0].Events = []corev1.Event{{Type: "Warning", Reason: memberstate.EventMemberCredentialInvalid}}
			},
			"failed credential-usable east: The controller rejects Secret member-west: no patterns. > kubectl --context east -n clusterset-dns annotate secret member-west 'clusterset-dns.github.io/accept=<namespaces and namespace/service, separated by commas>' --overwrite",
		},
		"a credential that is not valid": {
			func(east, _ *Cluster) { east.Members[0].Refused = errors.New("no kubeconfig") },
			"failed credential-usable east: The controller rejects Secret member-west: no kubeconfig. > kubectl clusterset join east west",
		},
		"a rank of the cluster itself that is not valid": {
			func(east, _ *Cluster) {
				east.Namespaces["clusterset-dns"].Annotations = map[string]string{member.RankAnnotation: "high"}
			},
			"failed ranks east: Namespace clusterset-dns: annotation clusterset-dns.github.io/rank: \"high\" is not an integer from -1000 to 1000. Exports of east come last in conflicts. > kubectl --context east annotate namespace clusterset-dns 'clusterset-dns.github.io/rank=<integer from -1000 to 1000>' --overwrite",
		},
		"a rank in one cluster": {
			func(east, _ *Cluster) { east.Members[0].Rank = 10 },
			"warning ranks west: The rank of west is 0 in west, but 10 in east, so they may import the same exports differently. > kubectl --context west annotate namespace clusterset-dns clusterset-dns.github.io/rank=10 --overwrite",
		},
		"a rank of the cluster itself alone": {
			func(east, _ *Cluster) {
				east.Namespaces["clusterset-dns"].Annotations = map[string]string{member.RankAnnotation: "-1"}
			},
			"warning ranks west: The rank of east is 0 in west, but -1 in east, so they may import the same exports differently. > kubectl --context west -n clusterset-dns annotate secret member-east clusterset-dns.github.io/rank=-1 --overwrite",
		},
		"a rank of a member that is not selected": {
			func(east, west *Cluster) {
				for i, c := range []*Cluster{east, west} {
					c.Members = append(c.Members, facts.Member{
						ID: "north", Rank: i, Lease: c.Members[0].Lease,
						Secret: &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "north"}},
					})
				}
			},
			"warning ranks west: The rank of north is 1 in west, but 0 in east, so they may import the same exports differently. > kubectl --context west -n clusterset-dns annotate secret north clusterset-dns.github.io/rank=0 --overwrite",
		},
		"a border that is not valid": {
			func(east, _ *Cluster) {
				east.Imports = []v1beta1.ServiceImport{importWith(merge.ConditionWithin, merge.ReasonInvalidBorder, "No border.")}
			},
			"warning preferences east: shop/db: No border. > Correct the annotation on the ServiceExports of all clusters: `kubectl --context <context of the oldest export> -n shop patch serviceexport db --type merge -p '{\"spec\":{\"exportedAnnotations\":{\"clusterset-dns.github.io/within\":\"<ids and label selectors of clusters>\"}}}'`.",
		},
		"an export of no Service": {
			func(east, _ *Cluster) { east.Exports = []v1beta1.ServiceExport{invalid("NoService")} },
			"failed exports-valid east: shop/db is not exported: No. > Create the Service, or: `kubectl clusterset unexport shop/db --contexts east`.",
		},
		"an export of what cannot be exported": {
			func(east, _ *Cluster) { east.Exports = []v1beta1.ServiceExport{invalid("InvalidServiceType")} },
			"failed exports-valid east: shop/db is not exported: No. > kubectl clusterset unexport shop/db --contexts east",
		},
		"exports and imports of a namespace that is being deleted": {
			func(east, _ *Cluster) {
				now := metav1.Now()
				east.Namespaces["shop"] = &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &now}}
				unseen, conflicting := invalid("NoService"), invalid("NoService")
				unseen.Status.Conditions = nil
				conflicting.Status.Conditions = []metav1.Condition{
					{Type: "Valid", Status: "True"},
					{Type: "Conflict", Status: "True"},
				}
				east.Exports = []v1beta1.ServiceExport{invalid("NoService"), unseen, conflicting}
				east.Imports = []v1beta1.ServiceImport{{ObjectMeta: metav1.ObjectMeta{
					Namespace: "shop", Name: "db",
					Labels: map[string]string{export.LabelManagedBy: export.Manager},
				}}}
			},
			"",
		},
		"an export without conditions": {
			func(east, _ *Cluster) {
				unseen := invalid("NoService")
				unseen.Status.Conditions = nil
				east.Exports = []v1beta1.ServiceExport{unseen}
			},
			"failed exports-seen east: The controller has not reconciled ServiceExport shop/db. > Find the cause in the logs of the controller: `kubectl --context east -n clusterset-dns logs -l app.kubernetes.io/component=controller --prefix --tail=200`.",
		},
		"an export whose import belongs to another implementation": {
			func(east, _ *Cluster) {
				unseen := invalid("NoService")
				unseen.Status.Conditions = nil
				east.Exports = []v1beta1.ServiceExport{unseen}
				east.Imports = []v1beta1.ServiceImport{{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db"}}}
			},
			"",
		},
		"an export that is being deleted": {
			func(east, _ *Cluster) {
				now, leaving := metav1.Now(), invalid("NoService")
				leaving.DeletionTimestamp = &now
				east.Exports = []v1beta1.ServiceExport{leaving}
			},
			"",
		},
		"a binding in a namespace": {
			func(east, _ *Cluster) {
				east.Bindings = []Binding{{Kind: "rolebinding", Namespace: "shop", Name: "more"}}
			},
			"failed member-least east: The rolebinding more grants service account clusterset-member more than members need. > See what it grants: `kubectl --context east describe rolebinding more -n shop`. If it is not needed, delete it: `kubectl --context east delete rolebinding more -n shop`.",
		},
		"an old node": {
			func(_, west *Cluster) { west.Nodes[0].Status.NodeInfo.KubeletVersion = "v1.24.0" },
			"warning node-version west: Node node runs v1.24.0, whose kube-proxy may keep sending traffic to a silent cluster. > Upgrade the node to 1.26 or newer.",
		},
		"no zone of the set": {
			func(_, west *Cluster) { west.Apex = dns.Answer{Rcode: "NXDOMAIN"} },
			"failed coredns west: Deployment kube-system/coredns does not exist, and the cluster's DNS returns NXDOMAIN for zone clusterset.local. > " + byHand,
		},
		"no DNS": {
			func(_, west *Cluster) { west.DNSError = errors.New("no pod is ready") },
			"warning coredns west: Deployment kube-system/coredns does not exist, and the cluster's DNS could not be queried. > " + byHand + "\n" +
				"warning dns-reachable west: The cluster's DNS could not be queried: no pod is ready. > kubectl clusterset check --contexts west --dns west=<address>",
		},
		"what was left behind": {
			func(_, west *Cluster) {
				west.Slices = []*discoveryv1.EndpointSlice{{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{
					export.LabelSourceCluster: "south", export.LabelSliceManagedBy: export.Manager,
				}}}}
			},
			"warning left-behind west: 1 EndpointSlices of south are left, which is not a member. > kubectl --context west delete endpointslices -A -l 'multicluster.kubernetes.io/source-cluster=south,endpointslice.kubernetes.io/managed-by=clusterset-controller.clusterset-dns.github.io,!clusterset-dns.github.io/clusterset'",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, finding := range Run(newSet(test.change)) {
				if finding.What != "" && !known(finding) {
					got = append(got, finding.Result+" "+finding.Check+" "+finding.Context+": "+finding.What+" > "+
						finding.Fix)
				}
			}
			if text := strings.Join(got, "\n"); text != test.want {
				t.Errorf("got\n%s\nwant\n%s", text, test.want)
			}
		})
	}
}

// invalid is an export that counts for nothing.
func invalid(reason string) v1beta1.ServiceExport {
	return v1beta1.ServiceExport{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db"},
		Status: v1beta1.ServiceExportStatus{Conditions: []metav1.Condition{{
			Type: "Valid", Status: "False",
			Reason: reason, Message: "No.",
		}}},
	}
}

const byHand = "Configure the cluster's DNS for clusterset.local by hand: forward the zone to the chart's CoreDNS (--set coredns.enabled=true), or use a CoreDNS with the plugin multicluster. If it cannot be queried, set its address with --dns."

// known are findings of the sets of these tests, whose clusters have no
// definitions.
func known(finding Finding) bool { return finding.Check == "crds" }

func TestCoreDNSChecks(t *testing.T) {
	set := newSet(func(east, west *Cluster) {
		east.Deployment, west.Deployment = installed("example.org/clusterset-coredns:v1"),
			installed("example.org/clusterset-coredns:v2")
		east.Corefile, west.Corefile = ". {\n multicluster clusterset.local\n}", ". {\n errors"
	})
	var got []string
	for _, finding := range Run(set) {
		if finding.What != "" && finding.Check != "crds" {
			got = append(got, finding.Check+" "+finding.Context)
		}
	}
	if want := []string{"coredns-version east", "corefile west"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestDefinitions(t *testing.T) {
	definition := func(established string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"conditions": []any{map[string]any{"type": "Established", "status": established}}}}}
	}
	for name, test := range map[string]struct {
		exports, version string
		want             string
	}{
		"names that are taken": {
			"False", "v1beta1",
			"CustomResourceDefinition serviceexports.multicluster.x-k8s.io is not established. > Fix the cause that its conditions report: `kubectl --context east describe crd serviceexports.multicluster.x-k8s.io`.",
		},
		"nothing is served": {"True", "", "The CRDs of the MCS API serve neither v1beta1 nor v1alpha1. > kubectl clusterset manifest crds | kubectl --context east apply --server-side --force-conflicts -f -"},
	} {
		set := newSet(func(east, _ *Cluster) {
			east.MCSVersion = test.version
			east.Definitions = map[string]*unstructured.Unstructured{
				v1beta1.ServiceExportFullName: definition(test.exports),
				v1beta1.ServiceImportFullName: definition("True"),
			}
		})
		for _, finding := range Run(set) {
			if finding.Check == "crds" && finding.Context == "east" && finding.What+" > "+finding.Fix != test.want {
				t.Errorf("%s: got %s > %s", name, finding.What, finding.Fix)
			}
		}
	}
}

func TestOlder(t *testing.T) {
	for _, order := range [][2]string{
		{"v1", "v2"},
		{"v1.9.0", "v1.10.0"},
		{"0.1.0", "0.2.0"},
		{"0.2.0-alpha", "0.2.0"},
		{"a", "b"},
	} {
		if !older(order[0], order[1]) || older(order[1], order[0]) {
			t.Errorf("%v are not in order", order)
		}
	}
}

func TestChecksAreNamedOnce(t *testing.T) {
	seen := map[string]bool{}
	for _, check := range Checks {
		if seen[check.Name] || check.About == "" {
			t.Errorf("check %q: its name is taken, or nothing says what it is about", check.Name)
		}
		seen[check.Name] = true
	}
	if len(Checks) < 25 {
		t.Errorf("there are %d checks", len(Checks))
	}
}

// importWith returns an import whose condition of that type is False.
func importWith(condition, reason, message string) v1beta1.ServiceImport {
	return v1beta1.ServiceImport{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "db",
			Labels: map[string]string{export.LabelManagedBy: export.Manager},
		},
		Spec: v1beta1.ServiceImportSpec{Type: v1beta1.ClusterSetIP},
		Status: v1beta1.ServiceImportStatus{Conditions: []metav1.Condition{
			{Type: "Ready", Status: "True"}, {Type: condition, Status: "False", Reason: reason, Message: message},
		}},
	}
}
