// SPDX-License-Identifier: Apache-2.0

package statusz

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/controller/scope"
)

// contextOf returns a placeholder for a context that reaches the cluster: see state.Finding.
func contextOf(cluster string) string { return "<context of " + cluster + ">" }

// kubectl returns a command in a cluster.
func kubectl(cluster, format string, args ...any) string {
	return "kubectl --context " + contextOf(cluster) + " " + fmt.Sprintf(format, args...)
}

// join returns the command that gives the local cluster a new credential for another, or an instruction for a token in a file.
func (l *Leader) join(candidate *member.Candidate, id, flags string) string {
	if m := l.Members.Get(id); m != nil && m.Config() != nil && m.Config().BearerTokenFile != "" {
		return "Correct the kubeconfig of " + candidate.String() + ", or the token in " + m.Config().BearerTokenFile +
			" of the controller's pod, which the API server of " + id + " must accept (docs/operate/members.md)."
	}
	return ofSecret(candidate, "credential", "kubectl clusterset join "+contextOf(l.Cluster)+" "+contextOf(id)+flags)
}

// annotate returns the command that annotates the Secret that makes a cluster a member.
func (l *Leader) annotate(candidate *member.Candidate, key, value string) string {
	return ofSecret(candidate, "annotation "+key, l.command(candidate, "annotate", fmt.Sprintf(" '%s=%s' --overwrite", key, value)))
}

// identify returns the command that gives the Secret that makes a cluster a member another id.
func (l *Leader) identify(candidate *member.Candidate, id string) string {
	return ofSecret(candidate, "cluster id", l.command(candidate, "label", fmt.Sprintf(" '%s=%s' --overwrite", member.ClusterLabel, id)))
}

// command returns a command on the Secret that makes a cluster a member.
func (l *Leader) command(candidate *member.Candidate, verb, flags string) string {
	namespace, name, _ := strings.Cut(candidate.Name, "/")
	return kubectl(l.Cluster, "-n %s %s secret %s%s", namespace, verb, name, flags)
}

// ofSecret returns a command that changes a Secret with member.ClusterLabel, or an instruction for other candidates, which belong to
// other systems. A Secret that join creates would take precedence over them.
func ofSecret(candidate *member.Candidate, part, command string) string {
	if candidate.Source != "" {
		return "Correct the " + part + " of " + candidate.String() + "."
	}
	return command
}

// undrain returns the command that undoes the drain of a cluster in the clusters in.
func undrain(cluster string, in ...string) string {
	for i := range in {
		in[i] = contextOf(in[i])
	}
	return "kubectl clusterset undrain " + cluster + " --contexts " + strings.Join(in, ",")
}

// quoted puts a command into backquotes, and returns an instruction unchanged.
func quoted(fix string) string {
	if strings.HasPrefix(fix, "kubectl ") {
		return "`" + fix + "`."
	}
	return fix
}

func withdraw(cluster, service string) string {
	return "Correct the Service, or: `kubectl clusterset unexport " + service + " --contexts " + contextOf(cluster) + "`."
}

// accept returns how to accept a service of a member.
func (l *Leader) accept(m *member.Member, service types.NamespacedName) string {
	if m.Accept() != nil {
		return extend(m, scope.AcceptAnnotation, service.String())
	}
	return kubectl(l.Cluster, "label namespace %s %s=true", service.Namespace, scope.AcceptLabel)
}

// extend returns the instruction to add a word to the list in an annotation of a member.
func extend(m *member.Member, key, word string) string {
	return "Add " + word + " to the annotation " + key + " of " + m.Candidate().String() + "."
}
