// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// An account is who makes a request: the administrator if it has no name, or else a service account.
type account struct {
	namespace, name string
	uid             types.UID
	expires         time.Time
}

func (a account) user() string { return "system:serviceaccount:" + a.namespace + ":" + a.name }

// authenticate returns whose token a request has. The lock is held.
func (s *Server) authenticate(req *http.Request) (account, *apierrors.StatusError) {
	token, bearer := strings.CutPrefix(req.Header.Get("Authorization"), "Bearer ")
	if s.options.Administrator == "" || bearer && token == s.options.Administrator {
		return account{}, nil
	}
	found, known := s.tokens[token]
	present, _ := s.store.get(schema.GroupResource{Resource: "serviceaccounts"},
		key(found.namespace, found.name)).(*corev1.ServiceAccount)
	if !bearer || !known || present == nil || present.UID != found.uid || time.Now().After(found.expires) {
		return account{}, apierrors.NewUnauthorized("Unauthorized")
	}
	return found, nil
}

// issue answers a TokenRequest. The token is bound to the service account, and is known to this server alone.
func (s *Server) issue(t *target, body []byte) (runtime.Object, *apierrors.StatusError) {
	owner, failure := s.existing(t)
	if failure != nil {
		return nil, failure
	}
	request := &authenticationv1.TokenRequest{}
	if _, _, err := codecs.UniversalDeserializer().Decode(body, nil, request); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	lifetime := time.Hour
	if seconds := request.Spec.ExpirationSeconds; seconds != nil {
		lifetime = time.Duration(*seconds) * time.Second
	}
	token := rand.Text()
	expires := time.Now().Add(lifetime)
	s.tokens[token] = account{t.Namespace, t.name, access(owner).GetUID(), expires}
	request.SetGroupVersionKind(authenticationv1.SchemeGroupVersion.WithKind("TokenRequest"))
	request.Name, request.Namespace, request.CreationTimestamp = t.name, t.Namespace, now()
	request.Status = authenticationv1.TokenRequestStatus{Token: token, ExpirationTimestamp: metav1.NewTime(expires)}
	return request, nil
}

// authorize refuses what no role allows (RBAC). The lock is held.
func (s *Server) authorize(a account, t *target) *apierrors.StatusError {
	if a.name == "" {
		return nil
	}
	resource, name := t.Resource.Resource, t.name
	if t.Subresource != "" {
		resource += "/" + t.Subresource
	}
	if selector, err := fields.ParseSelector(t.query.Get("fieldSelector")); err == nil && name == "" {
		name, _ = selector.RequiresExactMatch("metadata.name")
	}
	allows := func(rule rbacv1.PolicyRule) bool {
		return anyOf(rule.Verbs, t.Verb) && anyOf(rule.APIGroups, t.Resource.Group) && anyOf(rule.Resources, resource) &&
			(len(rule.ResourceNames) == 0 || slices.Contains(rule.ResourceNames, name))
	}
	for _, each := range s.rulesOf(a, t.Namespace) {
		if allows(each) {
			return nil
		}
	}
	where := " at the cluster scope"
	if t.Namespace != "" {
		where = fmt.Sprintf(" in the namespace %q", t.Namespace)
	}
	why := fmt.Sprintf("User %q cannot %s resource %q in API group %q%s", a.user(), t.Verb, resource, t.Resource.Group,
		where)
	return apierrors.NewForbidden(t.Resource, t.name, errors.New(why))
}

func anyOf(allowed []string, asked string) bool {
	return slices.Contains(allowed, asked) || slices.Contains(allowed, "*")
}

// rulesOf are those of the roles that are bound to an account in all namespaces, and in this one.
func (s *Server) rulesOf(a account, namespace string) (rules []rbacv1.PolicyRule) {
	rbac := func(resource string) schema.GroupResource {
		return schema.GroupResource{Group: rbacv1.GroupName, Resource: resource}
	}
	concerns := func(subject rbacv1.Subject) bool {
		switch subject.Kind {
		case rbacv1.ServiceAccountKind:
			return subject.Namespace == a.namespace && subject.Name == a.name
		case rbacv1.GroupKind:
			return slices.Contains([]string{
				"system:authenticated", "system:serviceaccounts", "system:serviceaccounts:" + a.namespace,
			}, subject.Name)
		}
		return subject.Name == a.user()
	}
	add := func(in string, role rbacv1.RoleRef, subjects []rbacv1.Subject) {
		if !slices.ContainsFunc(subjects, concerns) {
			return
		}
		if role.Kind == "ClusterRole" {
			if found, ok := s.store.get(rbac("clusterroles"), role.Name).(*rbacv1.ClusterRole); ok {
				rules = append(rules, found.Rules...)
			}
		} else if found, ok := s.store.get(rbac("roles"), key(in, role.Name)).(*rbacv1.Role); ok {
			rules = append(rules, found.Rules...)
		}
	}
	for _, each := range s.store.objects[rbac("clusterrolebindings")] {
		binding := each.(*rbacv1.ClusterRoleBinding)
		add("", binding.RoleRef, binding.Subjects)
	}
	for _, each := range s.store.objects[rbac("rolebindings")] {
		if binding := each.(*rbacv1.RoleBinding); binding.Namespace == namespace {
			add(namespace, binding.RoleRef, binding.Subjects)
		}
	}
	return rules
}
