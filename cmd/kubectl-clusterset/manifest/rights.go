// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"context"
	"fmt"
	"sync"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
)

// A Right allows one verb on one resource.
type Right = authorizationv1.ResourceAttributes

// Required are the rights that the roles of a name among objects give, one for
// each verb of each resource.
func Required(objects []*unstructured.Unstructured, role string) ([]Right, error) {
	var required []Right
	for _, object := range objects {
		if object.GetName() != role || object.GetKind() != "ClusterRole" && object.GetKind() != "Role" {
			continue
		}
		var typed rbacv1.ClusterRole // has all that a Role has
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &typed); err != nil {
			return nil, fmt.Errorf("%s %s: %w", object.GetKind(), role, err)
		}
		for _, rule := range typed.Rules {
			required = append(required, Expand(rule, object.GetNamespace())...)
		}
	}
	return required, nil
}

// Expand gives one right for each verb of each resource of a rule, in a namespace
// or, where that is empty, in all.
func Expand(rule rbacv1.PolicyRule, namespace string) []Right {
	names := rule.ResourceNames
	if len(names) == 0 {
		names = []string{""}
	}
	var rights []Right
	for _, group := range rule.APIGroups {
		for _, resource := range rule.Resources {
			for _, verb := range rule.Verbs {
				for _, name := range names {
					rights = append(rights, right(group, resource, verb, namespace, name))
				}
			}
		}
	}
	return rights
}

func right(group, resource, verb, namespace, name string) Right {
	resource, subresource := cutResource(resource)
	return Right{
		Group: group, Resource: resource, Subresource: subresource, Verb: verb, Namespace: namespace,
		Name: name,
	}
}

func cutResource(text string) (resource, subresource string) {
	for i := range text {
		if text[i] == '/' {
			return text[:i], text[i+1:]
		}
	}
	return text, ""
}

// maxReviews bounds concurrent reviews.
const maxReviews = 8

// Allowed returns those of the rights that a service account has.
func Allowed(ctx context.Context, client kubernetes.Interface, namespace, account string, rights []Right) ([]Right,
	error,
) {
	has := make([]bool, len(rights))
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	slots := make(chan struct{}, maxReviews)
	var reviews sync.WaitGroup
	for i, right := range rights {
		slots <- struct{}{}
		reviews.Go(func() {
			defer func() { <-slots }()
			review, err := client.AuthorizationV1().SubjectAccessReviews().Create(ctx,
				&authorizationv1.SubjectAccessReview{
					Spec: authorizationv1.SubjectAccessReviewSpec{
						User:               "system:serviceaccount:" + namespace + ":" + account,
						Groups:             Groups(namespace),
						ResourceAttributes: &right,
					},
				}, metav1.CreateOptions{})
			if err != nil {
				cancel(fmt.Errorf("review the permissions of service account %s/%s: %w", namespace, account, err))
				return
			}
			has[i] = review.Status.Allowed
		})
	}
	reviews.Wait()
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	var allowed []Right
	for i, right := range rights {
		if has[i] {
			allowed = append(allowed, right)
		}
	}
	return allowed, nil
}

// Groups are those that every service account of a namespace is in.
func Groups(namespace string) []string {
	return []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace, "system:authenticated"}
}

// Missing returns those of the rights that a service account lacks.
func Missing(ctx context.Context, client kubernetes.Interface, namespace, account string, rights []Right) ([]Right,
	error,
) {
	allowed, err := Allowed(ctx, client, namespace, account, rights)
	if err != nil {
		return nil, err
	}
	has := map[Right]bool{}
	for _, right := range allowed {
		has[key(right)] = true
	}
	var missing []Right
	for _, right := range rights {
		if !has[key(right)] {
			missing = append(missing, right)
		}
	}
	return missing, nil
}

// key is a right that can be compared with others of this package.
func key(r Right) Right {
	return Right{
		Group: r.Group, Resource: r.Resource, Subresource: r.Subresource, Verb: r.Verb, Namespace: r.Namespace,
		Name: r.Name,
	}
}
