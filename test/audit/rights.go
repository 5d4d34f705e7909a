// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"context"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/clusterset-dns/clusterset-dns/test/controlplane"
)

// Calls parses lines with comma-separated verbs, a resource as in a Call, and a place: a namespace, a namespace and a
// name, only a name (/name), or nothing for all namespaces.
//
//	get,list coordination.k8s.io/leases clusterset-dns/clusterset-dns-heartbeat
//	update multicluster.x-k8s.io/serviceimports:status
func Calls(t testing.TB, text string) (calls []Call) {
	t.Helper()
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		verbs, rest, ok := strings.Cut(line, " ")
		if !ok || len(strings.Fields(rest)) > 2 {
			t.Fatalf("line %q: want verbs, a resource and maybe a place", line)
		}
		for verb := range strings.SplitSeq(verbs, ",") {
			calls = append(calls, Call(verb+" "+rest))
		}
	}
	return calls
}

// A User is a user that an administrator impersonates.
type User = rest.ImpersonationConfig

// Allowed reports whether the API server allows a user to make a call in the form of Calls.
func Allowed(ctx context.Context, cluster *controlplane.Cluster, who User, c Call) (bool, error) {
	fields := append(strings.Fields(string(c)), "")
	attributes := &authorizationv1.ResourceAttributes{Verb: fields[0], Resource: fields[1]}
	if group, resource, ok := strings.Cut(fields[1], "/"); ok {
		attributes.Group, attributes.Resource = group, resource
	}
	attributes.Resource, attributes.Subresource, _ = strings.Cut(attributes.Resource, ":")
	attributes.Namespace, attributes.Name, _ = strings.Cut(fields[2], "/")
	review, err := cluster.Client().AuthorizationV1().SubjectAccessReviews().Create(ctx,
		&authorizationv1.SubjectAccessReview{
			Spec: authorizationv1.SubjectAccessReviewSpec{User: who.UserName, Groups: who.Groups, ResourceAttributes: attributes},
		}, metav1.CreateOptions{})
	if err != nil {
		return false, err
	}
	return review.Status.Allowed, nil
}

// Account returns the user of a service account.
func Account(namespace, name string) User {
	return User{
		UserName: "system:serviceaccount:" + namespace + ":" + name,
		Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace, "system:authenticated"},
	}
}
