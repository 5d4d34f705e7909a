// SPDX-License-Identifier: Apache-2.0

package statusz

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clientfeatures "k8s.io/client-go/features"
	clientfeaturestesting "k8s.io/client-go/features/testing"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/heartbeat"
	"github.com/clusterset-dns/clusterset-dns/controller/informer"
	"github.com/clusterset-dns/clusterset-dns/controller/limits"
	"github.com/clusterset-dns/clusterset-dns/controller/liveness"
	"github.com/clusterset-dns/clusterset-dns/controller/local"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/controller/memberstate"
	"github.com/clusterset-dns/clusterset-dns/controller/placement"
	"github.com/clusterset-dns/clusterset-dns/controller/reconciler"
	"github.com/clusterset-dns/clusterset-dns/controller/state"
)

// TestOnlyForwardedConnectionsAreAnswered: pods of the cluster can connect to the port, but must not get the state.
func TestOnlyForwardedConnectionsAreAnswered(t *testing.T) {
	for remote, want := range map[string]int{
		"127.0.0.1:4321": http.StatusServiceUnavailable, // no leader
		"[::1]:4321":     http.StatusServiceUnavailable,
		"10.64.0.9:4321": http.StatusForbidden,
		"127.0.0.6:4321": http.StatusForbidden, // the sidecar of a mesh
		"[fd00::1]:4321": http.StatusForbidden,
		"":               http.StatusForbidden,
	} {
		for _, path := range []string{state.PathStatus, state.PathExplain + "?service=shop/web"} {
			request := httptest.NewRequest(http.MethodGet, path, http.NoBody)
			request.RemoteAddr = remote
			response := httptest.NewRecorder()
			new(Server).ServeHTTP(response, request)
			if response.Code != want {
				t.Errorf("%s from %q: got %d", path, remote, response.Code)
			}
		}
	}
	leads, request, response := new(Server), httptest.NewRequest(http.MethodGet, state.PathExplain+"?service=a/b/c", http.NoBody), httptest.NewRecorder()
	leads.leader.Store(new(Leader))
	request.RemoteAddr = "127.0.0.1:4321"
	if leads.ServeHTTP(response, request); response.Code != http.StatusUnprocessableEntity {
		t.Errorf("a leader that is asked for no service: got %d", response.Code)
	}
}

// TestTextsOfMembersAreShortAndEscaped, whichever field has them.
func TestTextsOfMembersAreShortAndEscaped(t *testing.T) {
	evil := "\x1b[2J\x1b]0;all is fine\a\n" + strings.Repeat("x", 64<<10)
	for _, document := range []any{
		&state.Cluster{
			HeartbeatStopped: evil, Findings: []state.Finding{{What: evil, Fix: evil}}, Imports: []state.Import{{Message: evil}},
			Members: []state.Member{{Controller: evil, CIDRs: []string{evil}}},
		},
		&state.Explanation{
			Import: &state.Import{Message: evil}, Conditions: []metav1.Condition{{Message: evil}},
			Exports: []state.Export{{State: evil, Rules: []string{evil}}}, Endpoints: []state.Endpoint{{Zone: evil}},
		},
	} {
		response := httptest.NewRecorder()
		write(response, document)
		if text := response.Body.String(); strings.Contains(strings.ReplaceAll(text, `\\`, ""), `\u001b`) ||
			strings.Contains(text, strings.Repeat("x", 1<<10)) {
			t.Errorf("%T: %.3000s", document, text)
		}
	}
}

func TestFindingsOfImports(t *testing.T) {
	imported := func(labels map[string]string, conditions ...metav1.Condition) *v1beta1.ServiceImport {
		return &v1beta1.ServiceImport{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db", Labels: labels},
			Status:     v1beta1.ServiceImportStatus{Conditions: conditions},
		}
	}
	ours := map[string]string{export.LabelManagedBy: export.Manager}
	ready := func(status metav1.ConditionStatus, reason, message string) metav1.Condition {
		return metav1.Condition{Type: "Ready", Status: status, Reason: reason, Message: message}
	}
	nowhere := imported(ours, ready("True", "Ready", ""), metav1.Condition{Type: placement.ConditionAllowedClusters, Status: "False", Reason: placement.ReasonInvalidAnnotation, Message: "Not valid."})
	for name, test := range map[string]struct {
		of       *v1beta1.ServiceImport
		exported bool
		want     string // name, severity, what and fix of each
	}{
		"ready":                    {imported(ours, ready("True", "Ready", "")), true, ""},
		"foreign and unused":       {imported(nil), false, ""},
		"not ready":                {imported(ours, ready("False", "Pending", "No cluster exports it.")), true, "imports-ready failed: Import shop/db is not ready: No cluster exports it. > Correct what the message names, or change or withdraw the exports of the service."},
		"foreign":                  {imported(nil), true, "imports-foreign failed: The controller does not manage ServiceImport shop/db, so exports with this name are not imported. > Let the controller adopt it with its IP: `kubectl --context <context of east> -n shop annotate serviceimport db clusterset-dns.github.io/adopt=true`. If it is not used, delete it: `kubectl --context <context of east> -n shop delete serviceimport db`."},
		"invalid allowed clusters": {nowhere, true, "preferences warning: shop/db: Not valid. > Correct spec.exportedAnnotations on the ServiceExports of all clusters."},
		"a preference in use":      {imported(ours, ready("True", "Ready", ""), metav1.Condition{Type: placement.ConditionPreferCluster, Status: "True"}), true, ""},
	} {
		var got []string
		var found state.Findings
		ofImport(&found, "east", test.of, test.exported)
		for _, each := range found {
			got = append(got, each.Name+" "+each.Severity+": "+each.What+" > "+each.Fix)
		}
		if text := strings.Join(got, "\n"); text != test.want {
			t.Errorf("%s: got\n%s\nwant\n%s", name, text, test.want)
		}
	}
}

type noHandler struct{}

func (noHandler) ServiceChanged(types.NamespacedName) {}
func (noHandler) MemberChanged(string)                {}

// leaderOf is the leader of east with a member that is not read: west. Without annotations, it has none.
func leaderOf(t *testing.T, annotations map[string]string) *Leader {
	clientfeaturestesting.SetFeatureDuringTest(t, clientfeatures.WatchListClient, false) // no watch of a fake client begins with a list
	gate, now := &informer.FreshnessGate{}, clock.RealClock{}
	own := local.New(fake.NewClientset(), gate, "mcs", "")
	if annotations != nil {
		_ = own.Secrets.Indexer().Add(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{
			Namespace: "mcs", Name: "west", Labels: map[string]string{member.ClusterLabel: "west"}, Annotations: annotations,
		}})
	}
	tracker := memberstate.NewTracker(liveness.Limits{StaleAfter: time.Minute}, now, own.ServicesFrom,
		&memberstate.Reporter{Recorder: &record.FakeRecorder{}})
	tracker.Handle(func(string) {})
	members := member.New(member.Config{
		Cluster: "east", Local: own, Tracker: tracker, Report: func(member.Problem) {}, Clock: now,
		Limits: limits.Default, Memory: 1 << 30,
	})
	members.Handle(noHandler{})
	members.Join(t.Context(), nil)
	return &Leader{Reconciler: reconciler.New(reconciler.Config{
		Cluster: "east", Namespace: "mcs", Local: own, Tracker: tracker, Clock: now, Members: members,
		API: local.NewAPI(nil, nil, fake.NewClientset().Discovery(), dynamicfake.NewSimpleDynamicClient(runtime.NewScheme()), gate),
	})}
}

// TestFixesOfMembersThatAreNoSecrets: a fix changes no object of another system.
func TestFixesOfMembersThatAreNoSecrets(t *testing.T) {
	leader := leaderOf(t, nil)
	for want, candidate := range map[string]*member.Candidate{
		"kubectl --context <context of east> -n mcs label secret member-west 'clusterset-dns.github.io/cluster=b' --overwrite | `kubectl clusterset join <context of east> <context of west> --server a`. | kubectl --context <context of east> -n mcs annotate secret member-west 'key=a,b' --overwrite": {
			Cluster: "west", Kind: "Secret", Name: "mcs/member-west", Object: &corev1.Secret{},
		},
		"Correct the cluster id of ClusterProfile fleet/west. | Correct the credential of ClusterProfile fleet/west. | Correct the annotation key of ClusterProfile fleet/west.": {
			Cluster: "west", Kind: "ClusterProfile", Name: "fleet/west", Source: "clusterprofile:fleet", Object: &corev1.Secret{},
		},
	} {
		if got := leader.identify(candidate, "b") + " | " + quoted(leader.join(candidate, "west", " --server a")) + " | " +
			leader.annotate(candidate, "key", "a,b"); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestFindingsOfAMember: the fix of a dead cluster needs no API server of it, and what drains a member is corrected where it is.
func TestFindingsOfAMember(t *testing.T) {
	none, drained := map[string]string{}, map[string]string{member.DrainAnnotation: "true"}
	for name, test := range map[string]struct {
		annotations map[string]string
		heartbeat   bool // asks to be drained
		verdict     liveness.Verdict
		want        string // name and fix
	}{
		"dead":                       {annotations: none, verdict: liveness.Verdict{State: liveness.Stale, Reason: liveness.NoHeartbeat}, want: "member-fresh: Make sure that east reaches the API server and the controller of west: `kubectl clusterset check --contexts <context of east>,<context of west>`."},
		"cut":                        {annotations: none, verdict: liveness.Verdict{State: liveness.Stale, Reason: liveness.PodsUnreachable}, want: "pods-reached: kubectl clusterset test connectivity --contexts <context of east>,<context of west>"},
		"drained by itself":          {annotations: none, heartbeat: true, want: "drained: kubectl clusterset undrain west --contexts <context of west>"},
		"drained here":               {annotations: drained, want: "drained: kubectl clusterset undrain west --contexts <context of east>"},
		"drained here and by itself": {annotations: drained, heartbeat: true, want: "drained: kubectl clusterset undrain west --contexts <context of west>,<context of east>"},
	} {
		leader, found := leaderOf(t, test.annotations), state.Findings{}
		known := memberstate.Member{Verdict: test.verdict}
		known.Verdict.Cluster, known.Heartbeat.Drained = "west", test.heartbeat
		known.Drained = test.heartbeat || len(test.annotations) > 0
		if known.Verdict.State == liveness.Stale {
			known.Path = liveness.Unreachable
		}
		if leader.judged(&found, leader.Members.Get("west"), known); len(found) != 1 || found[0].Name+": "+found[0].Fix != test.want {
			t.Errorf("%s: found %+v", name, found)
		}
	}
}

// TestNamespacesInFixes: administrators copy commands, so no namespace that a member made up is in one.
func TestNamespacesInFixes(t *testing.T) {
	leader := leaderOf(t, map[string]string{})
	for _, namespace := range []string{"x;id", "shop"} {
		leader.Members.Get("west").Put(&discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: "web", Labels: map[string]string{v1beta1.LabelServiceName: "web"},
		}})
	}
	leader.API.Exports = informer.Of[*v1beta1.ServiceExport]{Informer: leader.Local.Nodes.Informer} // which are empty
	leader.API.Imports = informer.Of[*v1beta1.ServiceImport]{Informer: leader.Local.Nodes.Informer}
	var found state.Findings
	leader.ofServices(&found)
	if len(found) != 1 || found[0].Fix != "kubectl --context <context of east> create namespace shop" {
		t.Errorf("found %+v", found)
	}
}

// TestFixesOfParts: the ranges of a member may lack an address that is correct.
func TestFixesOfParts(t *testing.T) {
	var found state.Findings
	leaderOf(t, map[string]string{}).ofParts(&found, reconciler.Input{Problems: map[string][]export.Problem{
		"west": {{Reason: export.ReasonForeignAddress}, {}}, "east": {{}},
	}})
	if len(found) != 3 || found[0].Fix != "Correct the object in east." || found[2].Fix != "Correct the object in west." ||
		found[1].Fix != "Correct the object in west. If its address "+
			"is correct: Add its range to the annotation clusterset-dns.github.io/cidrs of Secret mcs/west." {
		t.Errorf("found %+v", found)
	}
}

// TestACredentialThatIsNotUsed: a ClusterProfile with the name of the Secret that makes its cluster a member is another credential.
func TestACredentialThatIsNotUsed(t *testing.T) {
	leader := leaderOf(t, map[string]string{})
	for kind, want := range map[string]string{"Secret": "credential-usable", "ClusterProfile": "credential-single"} {
		var found state.Findings
		leader.refused(&found, member.Problem{
			Candidate: &member.Candidate{Cluster: "west", Kind: kind, Name: "mcs/west", Object: &corev1.Secret{}}, Err: errors.New("no"),
		})
		if found[0].Name != want {
			t.Errorf("%s: found %v", kind, found)
		}
	}
}

// TestFindingsOfTheCluster: no other check reports a stopped heartbeat, or that the optional right to list Nodes is missing. One finding
// has the error of one of the services that fail, because all probably fail for the same reason.
func TestFindingsOfTheCluster(t *testing.T) {
	leader := leaderOf(t, nil)
	leader.Heartbeat = heartbeat.New(heartbeat.Config{
		Clock: clock.RealClock{}, Recorder: &record.FakeRecorder{}, Late: func(time.Duration) string { return "Services" },
	}, nil)
	leader.Heartbeat.Doubt(t.Context())
	found := leader.findings()
	failing(&found, nil)
	failing(&found, map[types.NamespacedName]error{
		{Namespace: "shop", Name: "web"}: errors.New("web is forbidden"), {Namespace: "shop", Name: "db"}: errors.New("db is forbidden"),
	})
	got := ""
	for _, each := range found {
		got += "\n" + each.Name + ": " + each.What + " > " + each.Fix
	}
	const want = `
heartbeat: The controller does not renew its heartbeat, so other clusters demote the endpoints of this one: Services of this cluster cannot be read. Check the API server, the CustomResourceDefinitions of the MCS API, and the rights of the controller. > kubectl --context <context of east> -n mcs logs -l app.kubernetes.io/component=controller --prefix --tail=200
nodes: The controller cannot list the Nodes of east, so it writes no hints, and does not refuse addresses of nodes as endpoints. > Give the controller the rights of deploy/rbac.yaml.
services-written: The controller cannot write shop/db (services that fail: 2): db is forbidden. > Do what the error says. If the API server refuses a write, give the controller the rights of deploy/rbac.yaml, and look at the quotas and admission webhooks.`
	if got != want {
		t.Errorf("got%s", got)
	}
}
