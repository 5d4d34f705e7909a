// SPDX-License-Identifier: Apache-2.0

// Package audit compares the calls of programs, from the audit logs of API servers, with their rights.
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

// logFile is in the cluster's directory, which is the working directory of its programs.
const logFile = "audit.log"

// Args returns the arguments of an API server that logs every call of a service account of this project. The working
// directory must be the folder of another package in test.
func Args() []string {
	policy, err := filepath.Abs("../audit/policy.yaml")
	if err != nil {
		panic(err) // the working directory does not exist
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

// An event is a call in the audit log.
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

// A Log has the calls of a cluster since Of was called.
type Log struct {
	cluster *controlplane.Cluster
	from    int
}

// Of returns the log, from now on, of a cluster that was started with Args.
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

// events returns the calls for objects.
func (l Log) events(t testing.TB) []event {
	t.Helper()
	var events []event
	for line := range bytes.Lines(read(t, l.cluster)[l.from:]) {
		var e event
		if err := json.Unmarshal(line, &e); err != nil && bytes.HasSuffix(line, []byte("\n")) { // else incomplete
			t.Fatalf("%v in\n%s", err, line)
		}
		if e.ObjectRef.Resource != "" {
			events = append(events, e)
		}
	}
	return events
}

// Has reports whether the call was made.
func (l Log) Has(t testing.TB, call Call) bool {
	return slices.ContainsFunc(l.events(t), func(e event) bool { return e.call() == call })
}

// Compare returns the problems: each call that was refused, and each right of the roles in a YAML stream that no call
// used and that is not in unused, which has the reasons for unused rights by role and call.
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
			// A watch can stream the list, but older API servers need a separate list.
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

// granted returns the rights of the roles in a YAML stream, by the name of the role.
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
					for _, group := range rule.APIGroups {
						rights[role.Name][newCall(verb, group, strings.Replace(resource, "/", ":", 1))] = true
					}
				}
			}
		}
	}
	return rights
}
