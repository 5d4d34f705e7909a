// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/gateway-api/conformance/utils/http"
	"sigs.k8s.io/gateway-api/conformance/utils/kubernetes"
	confsuite "sigs.k8s.io/gateway-api/conformance/utils/suite"
	"sigs.k8s.io/gateway-api/pkg/features"
)

func init() {
	ConformanceTests = append(ConformanceTests, HTTPRouteServiceImportInvalidRefs)
}

// HTTPRouteServiceImportInvalidRefs has the same requirements as HTTPRouteServiceImport.
var HTTPRouteServiceImportInvalidRefs = confsuite.ConformanceTest{
	ShortName:   "HTTPRouteServiceImportInvalidRefs",
	Description: "An HTTPRoute should set ResolvedRefs to False and return 500 if its backend is a ServiceImport that does not exist (reason BackendNotFound), or one in another namespace without a ReferenceGrant for ServiceImports (reason RefNotPermitted)",
	Features: []features.FeatureName{
		features.SupportGateway,
		features.SupportHTTPRoute,
		features.SupportReferenceGrant,
		SupportServiceImport,
	},
	Manifests:   []string{"tests/httproute-service-import-invalid-refs.yaml", "tests/httproute-service-import-invalid-refs-imports.yaml"},
	Provisional: true,
	Test: func(t *testing.T, suite *confsuite.ConformanceTestSuite) {
		var (
			ns          = confsuite.InfrastructureNamespace
			nonexistent = types.NamespacedName{Name: "service-import-nonexistent", Namespace: ns}
			crossNS     = types.NamespacedName{Name: "service-import-cross-namespace", Namespace: ns}
			gwNN        = types.NamespacedName{Name: "same-namespace", Namespace: ns}
		)
		setImportedEndpoints(t, suite.Client, confsuite.WebBackendNamespace, true)
		gwAddr := kubernetes.GatewayAndHTTPRoutesMustBeAccepted(t, suite.Client, suite.TimeoutConfig, suite.ControllerName, kubernetes.NewGatewayRef(gwNN), nonexistent, crossNS)

		for _, each := range []struct {
			routeNN types.NamespacedName
			path    string
			reason  v1.RouteConditionReason
		}{
			{nonexistent, "/nonexistent", v1.RouteReasonBackendNotFound},
			{crossNS, "/cross-namespace", v1.RouteReasonRefNotPermitted},
		} {
			t.Run("HTTPRoute has a ResolvedRefs Condition with status False and Reason "+string(each.reason)+", and requests receive a 500", func(t *testing.T) {
				kubernetes.HTTPRouteMustHaveCondition(t, suite.Client, suite.TimeoutConfig, each.routeNN, gwNN, metav1.Condition{
					Type:   string(v1.RouteConditionResolvedRefs),
					Status: metav1.ConditionFalse,
					Reason: string(each.reason),
				})
				http.MakeRequestAndExpectEventuallyConsistentResponse(t, suite.RoundTripper, suite.TimeoutConfig, gwAddr, http.ExpectedResponse{
					Request:  http.Request{Path: each.path},
					Response: http.Response{StatusCode: 500},
				})
			})
		}

		t.Run("HTTPRoute has a ResolvedRefs Condition with status True once a ReferenceGrant permits ServiceImports, and requests succeed", func(t *testing.T) {
			suite.Applier.MustApplyWithCleanup(t, suite.Client, suite.TimeoutConfig, "tests/httproute-service-import-reference-grant.yaml", suite.CleanupTestResources)
			kubernetes.HTTPRouteMustHaveResolvedRefsConditionsTrue(t, suite.Client, suite.TimeoutConfig, crossNS, gwNN)
			http.MakeRequestAndExpectEventuallyConsistentResponse(t, suite.RoundTripper, suite.TimeoutConfig, gwAddr, http.ExpectedResponse{
				Request:   http.Request{Path: "/cross-namespace"},
				Response:  http.Response{StatusCode: 200},
				Backend:   "web-backend",
				Namespace: confsuite.WebBackendNamespace,
			})
		})
	},
}
