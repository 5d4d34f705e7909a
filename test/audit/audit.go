// SPDX-License-Identifier: Apache-2.0

// Package audit compares what programs call, as API servers write it down, with the rights that they have.
package audit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/clusterset-dns/clusterset-dns/test/clusterset"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/controlplanetest"
)

// logFile is in the cluster's directory, the working directory of its programs.
const logFile = "audit.log"

// Args are the arguments of an API server that writes down every call of a service account of this project. The working
// directory is that of another package in test.
func Args() []string {
	policy, err := filepath.Abs("../audit/policy.yaml")
	if err != nil {
		panic(err) // there is no working directory
	}
	return []string{"--audit-policy-file=" + policy, "--audit-log-path=" + logFile, "--audit-log-mode=blocking"}
}

// A Call is a verb and a resource, with its group and subresource:
//
//	update multicluster.x-k8s.io/serviceexports:status
type Call string

func newCall(verb, group, resource string) Call {
	if group != "" {
		resource = group + "/" + resource
	}
	return Call(verb + " " + resource)
}

// An event is what the audit log has of a call.
type event struct {
	Verb, RequestURI string
	User             struct{ Username string }
	ObjectRef        struct{ Resource, APIGroup, Subresource string }
	ResponseStatus   struct{ Code int }
}

func (e event) call() Call {
	return newCall(e.Verb, e.ObjectRef.APIGroup,
		strings.TrimSuffix(e.ObjectRef.Resource+":"+e.ObjectRef.Subresource, ":"))
}

// A Log is the calls from a moment on.
type Log struct {
	cluster *controlplane.Cluster
	from    int
}

// Of is the log of a cluster that runs with Args, from now on.
func Of(t testing.TB, cluster *controlplane.Cluster) Log {
	return Log{cluster, len(read(t, cluster))}
}

func read(t testing.TB, cluster *controlplane.Cluster) []byte {
	text, err := os.ReadFile(filepath.Join(cluster.Directory(), logFile))
	if !errors.Is(err, os.ErrNotExist) {
		controlplanetest.Must(t, err)
	}
	return text
}

// events are the calls for objects.
func (l Log) events(t testing.TB) []event {
	t.Helper()
	var events []event
	for line := range bytes.Lines(read(t, l.cluster)[l.from:]) {
		var e event
		if err := json.Unmarshal(line, &e); err != nil && bytes.HasSuffix(line, []byte("\n")) { // else it is being written
			t.Fatalf("%v in\n%s", err, line)
		}
		if e.ObjectRef.Resource != "" {
			events = append(events, e)
		}
	}
	return events
}

// Has reports whether a call was made.
func (l Log) Has(t testing.TB, call Call) bool {
	return slices.ContainsFunc(l.events(t), func(e event) bool { return e.call() == call })
}

// Compare returns what is wrong: each call that was refused, and each right of the roles in the YAML stream that was
// used nowhere and is not in unused, which says why it is there, by role and call.
func Compare(t testing.TB, roles string, unused map[string]map[Call]string, logs ...Log) (problems []string) {
	tell := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	used := map[string]map[Call]bool{}
	for _, log := range logs {
		for _, made := range log.events(t) {
			if made.ResponseStatus.Code == 403 {
				tell("%s was refused in %s: %s", made.User.Username, log.cluster.Name(), made.RequestURI)
			}
			name := made.User.Username[strings.LastIndex(made.User.Username, ":")+1:]
			if used[name] == nil {
				used[name] = map[Call]bool{}
			}
			used[name][made.call()] = true
		}
	}
	for name, rights := range granted(t, roles) {
		for _, right := range slices.Sorted(maps.Keys(rights)) {
			if used[name][right] || unused[name][right] != "" {
				continue
			}
			// A watch lists, too; older API servers have to be asked for a list.
			if resource, ok := strings.CutPrefix(string(right), "list "); !ok || !used[name][Call("watch "+resource)] {
				tell("%s may %s, and never did", name, right)
			}
		}
		if len(used[name]) == 0 {
			tell("%s called nothing", name)
		}
	}
	return problems
}

// granted are the rights of the roles in a YAML stream, by the name of the role.
func granted(t testing.TB, text string) map[string]map[Call]bool {
	rights := map[string]map[Call]bool{}
	objects, err := clusterset.Objects([]byte(text))
	controlplanetest.Must(t, err)
	for _, object := range objects {
		if kind := object.GetKind(); kind != "ClusterRole" && kind != "Role" {
			continue
		}
		var role rbacv1.ClusterRole // a Role has the same rules
		controlplanetest.Must(t, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &role))
		if rights[role.Name] == nil {
			rights[role.Name] = map[Call]bool{}
		}
		for _, rule := range role.Rules {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					rights[role.Name][newCall(verb, rule.APIGroups[0], strings.Replace(resource, "/", ":", 1))] = true
				}
			}
		}
	}
	return rights
}
