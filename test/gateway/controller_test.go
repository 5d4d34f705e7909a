// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/mcs-api/pkg/apis/v1alpha1"
)

// controllerName is the controller name in the GatewayClass.
const controllerName gatewayv1.GatewayController = "clusterset-dns.example.net/haproxy"

// A controller programs one haproxy for all Gateways. It supports only what the tests need: HTTPRoutes in the namespace
// of the Gateway, path prefixes, weights, Services and ServiceImports as backends, and ReferenceGrants.
type controller struct {
	client client.Client
	proxy  *haproxy
}

// rule is a rule of a Route, for requests whose path has a prefix.
type rule struct {
	prefix   string
	backends []backend
}

// backend gets a share of the requests.
type backend struct {
	weight    int32
	invalid   bool     // the response is 500
	endpoints []string // if empty, the response is 503
}

// run reconciles until ctx is done. It lists everything each time, because the clusters are small and the tests short.
func (c *controller) run(ctx context.Context) error {
	for {
		if err := c.reconcile(ctx); err != nil && ctx.Err() == nil && !apierrors.IsConflict(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(200 * time.Millisecond):
		}
	}
}

func (c *controller) reconcile(ctx context.Context) error {
	class := &gatewayv1.GatewayClass{}
	if err := c.client.Get(ctx, client.ObjectKey{Name: className}, class); err != nil {
		return err
	}
	if err := c.update(ctx, class, func() { set(&class.Status.Conditions, class, "Accepted", "") }); err != nil {
		return err
	}
	routes := &gatewayv1.HTTPRouteList{}
	if err := c.client.List(ctx, routes); err != nil {
		return err
	}
	var rules []rule
	for i := range routes.Items {
		route := &routes.Items[i]
		if !route.DeletionTimestamp.IsZero() {
			continue
		}
		reason := gatewayv1.RouteConditionReason("")
		for _, each := range route.Spec.Rules {
			var backends []backend
			for _, ref := range each.BackendRefs {
				resolved, problem, err := c.resolve(ctx, route.Namespace, ref.BackendRef)
				if err != nil {
					return err
				}
				if problem != "" {
					reason, resolved.invalid = problem, true
				}
				backends = append(backends, resolved)
			}
			for _, match := range each.Matches {
				rules = append(rules, rule{prefix: *match.Path.Value, backends: backends})
			}
		}
		if err := c.update(ctx, route, func() {
			conditions := []metav1.Condition{}
			if len(route.Status.Parents) > 0 {
				conditions = route.Status.Parents[0].Conditions
			}
			set(&conditions, route, "Accepted", "")
			set(&conditions, route, "ResolvedRefs", string(reason))
			parent := *route.Spec.ParentRefs[0].DeepCopy()
			parent.Group, parent.Kind = new(gatewayv1.Group(gatewayv1.GroupName)), new(gatewayv1.Kind("Gateway")) // the defaults
			route.Status.Parents = []gatewayv1.RouteParentStatus{{
				ParentRef: parent, ControllerName: controllerName, Conditions: conditions,
			}}
		}); err != nil {
			return err
		}
	}
	if err := c.proxy.serve(rules); err != nil {
		return err
	}
	return c.updateGateways(ctx, int32(len(routes.Items)))
}

// updateGateways is called last, so that a Gateway is reported as programmed only after haproxy is.
func (c *controller) updateGateways(ctx context.Context, routes int32) error {
	gateways := &gatewayv1.GatewayList{}
	if err := c.client.List(ctx, gateways); err != nil {
		return err
	}
	for i := range gateways.Items {
		gateway := &gateways.Items[i]
		if err := c.update(ctx, gateway, func() {
			status := &gateway.Status
			status.Addresses = []gatewayv1.GatewayStatusAddress{{Type: new(gatewayv1.IPAddressType), Value: proxyAddress}}
			set(&status.Conditions, gateway, "Accepted", "")
			set(&status.Conditions, gateway, "Programmed", "")
			status.Listeners = slices.Clone(status.Listeners)
			for l, listener := range gateway.Spec.Listeners {
				if len(status.Listeners) <= l {
					status.Listeners = append(status.Listeners, gatewayv1.ListenerStatus{})
				}
				of := &status.Listeners[l]
				of.Name, of.AttachedRoutes = listener.Name, routes
				of.SupportedKinds = []gatewayv1.RouteGroupKind{{Group: new(gatewayv1.Group(gatewayv1.GroupName)), Kind: "HTTPRoute"}}
				for _, condition := range []string{"Accepted", "Programmed", "ResolvedRefs"} {
					set(&of.Conditions, gateway, condition, "")
				}
			}
		}); err != nil {
			return err
		}
	}
	return nil
}

// update writes the status of an object if change modifies it.
func (c *controller) update(ctx context.Context, object client.Object, change func()) error {
	before := object.DeepCopyObject()
	if change(); reflect.DeepEqual(before, object) {
		return nil
	}
	return client.IgnoreNotFound(c.client.Status().Update(ctx, object))
}

// set sets a condition to false with a reason, or to true if reason is empty.
func set(conditions *[]metav1.Condition, of client.Object, condition, reason string) {
	status := metav1.ConditionFalse
	if reason == "" {
		status, reason = metav1.ConditionTrue, condition
	}
	meta.SetStatusCondition(conditions, metav1.Condition{
		Type: condition, Status: status, Reason: reason, ObservedGeneration: of.GetGeneration(),
	})
}

// resolve returns the backend of a reference, or the reason why there is none.
func (c *controller) resolve(ctx context.Context, from string, ref gatewayv1.BackendRef) (backend, gatewayv1.RouteConditionReason, error) {
	resolved := backend{weight: 1}
	if ref.Weight != nil {
		resolved.weight = *ref.Weight
	}
	group, kind, namespace := gatewayv1.Group(""), gatewayv1.Kind("Service"), from
	if ref.Kind != nil {
		group, kind = *ref.Group, *ref.Kind
	}
	if ref.Namespace != nil {
		namespace = string(*ref.Namespace)
	}
	if permitted, err := c.permitted(ctx, from, namespace, group, kind, ref.Name); err != nil || !permitted {
		return resolved, gatewayv1.RouteReasonRefNotPermitted, err
	}
	key := client.ObjectKey{Namespace: namespace, Name: string(ref.Name)}
	label, port := discoveryv1.LabelServiceName, ""
	var err error
	switch kind {
	case "Service":
		service := &corev1.Service{}
		err = c.client.Get(ctx, key, service)
		for _, each := range service.Spec.Ports {
			if each.Port == *ref.Port {
				port = each.Name
			}
		}
	case "ServiceImport":
		imported := &v1alpha1.ServiceImport{}
		label = v1alpha1.LabelServiceName
		err = c.client.Get(ctx, key, imported)
		for _, each := range imported.Spec.Ports {
			if each.Port == *ref.Port {
				port = each.Name
			}
		}
	default:
		return resolved, gatewayv1.RouteReasonInvalidKind, nil
	}
	if apierrors.IsNotFound(err) {
		return resolved, gatewayv1.RouteReasonBackendNotFound, nil
	}
	if err != nil {
		return resolved, "", err
	}
	resolved.endpoints, err = c.endpoints(ctx, namespace, label, string(ref.Name), port)
	return resolved, "", err
}

// permitted reports whether a Route may refer to an object.
func (c *controller) permitted(ctx context.Context, from, to string, group gatewayv1.Group, kind gatewayv1.Kind, name gatewayv1.ObjectName) (bool, error) {
	if from == to {
		return true, nil
	}
	grants := &gatewayv1.ReferenceGrantList{}
	if err := c.client.List(ctx, grants, client.InNamespace(to)); err != nil {
		return false, err
	}
	for _, grant := range grants.Items {
		if slices.ContainsFunc(grant.Spec.From, func(f gatewayv1.ReferenceGrantFrom) bool {
			return f.Group == gatewayv1.GroupName && f.Kind == "HTTPRoute" && string(f.Namespace) == from
		}) && slices.ContainsFunc(grant.Spec.To, func(t gatewayv1.ReferenceGrantTo) bool {
			return t.Group == group && t.Kind == kind && (t.Name == nil || *t.Name == name)
		}) {
			return true, nil
		}
	}
	return false, nil
}

// endpoints returns the ready endpoints of EndpointSlices with a label, as addresses with ports.
func (c *controller) endpoints(ctx context.Context, namespace, label, name, port string) (all []string, err error) {
	list := &discoveryv1.EndpointSliceList{}
	if err := c.client.List(ctx, list, client.InNamespace(namespace), client.MatchingLabels{label: name}); err != nil {
		return nil, err
	}
	for _, slice := range list.Items {
		for _, p := range slice.Ports {
			if p.Name == nil || *p.Name != port || slice.AddressType != discoveryv1.AddressTypeIPv4 {
				continue
			}
			for _, endpoint := range slice.Endpoints {
				if endpoint.Conditions.Ready == nil || *endpoint.Conditions.Ready {
					all = append(all, fmt.Sprintf("%s:%d", endpoint.Addresses[0], *p.Port))
				}
			}
		}
	}
	slices.Sort(all)
	return all, nil
}
