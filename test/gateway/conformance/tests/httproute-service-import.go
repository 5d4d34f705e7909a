// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/gateway-api/conformance/utils/http"
	"sigs.k8s.io/gateway-api/conformance/utils/kubernetes"
	confsuite "sigs.k8s.io/gateway-api/conformance/utils/suite"
	"sigs.k8s.io/gateway-api/conformance/utils/weight"
	"sigs.k8s.io/gateway-api/pkg/features"
)

func init() {
	ConformanceTests = append(ConformanceTests, HTTPRouteServiceImport)
}

// HTTPRouteServiceImport needs the CRDs of the Multi-Cluster Services API. The second manifest replaces an
// implementation. With a real implementation, leave it out and export the Services named in it.
var HTTPRouteServiceImport = confsuite.ConformanceTest{
	ShortName:   "HTTPRouteServiceImport",
	Description: "An HTTPRoute with a ServiceImport as backend should route traffic to the endpoints of all clusters that export the Service, alone and beside a Service",
	Features: []features.FeatureName{
		features.SupportGateway,
		features.SupportHTTPRoute,
		SupportServiceImport,
	},
	Manifests:   []string{"tests/httproute-service-import.yaml", "tests/httproute-service-import-imports.yaml"},
	Provisional: true,
	Test: func(t *testing.T, suite *confsuite.ConformanceTestSuite) {
		var (
			ns      = confsuite.InfrastructureNamespace
			v1, v2  = confsuite.InfraBackendServiceNameV1, confsuite.InfraBackendServiceNameV2
			v3      = confsuite.InfraBackendServiceNameV3
			routeNN = types.NamespacedName{Name: "service-import", Namespace: ns}
			gwNN    = types.NamespacedName{Name: "same-namespace", Namespace: ns}
		)
		setImportedEndpoints(t, suite.Client, ns, true)
		gwAddr := kubernetes.GatewayAndHTTPRoutesMustBeAccepted(t, suite.Client, suite.TimeoutConfig, suite.ControllerName, kubernetes.NewGatewayRef(gwNN), routeNN)
		kubernetes.HTTPRouteMustHaveResolvedRefsConditionsTrue(t, suite.Client, suite.TimeoutConfig, routeNN, gwNN)
		imported := request{suite: suite, gwAddr: gwAddr, path: "/import", statusCodes: []int{200}}

		t.Run("Requests to a ServiceImport should reach the endpoints of each cluster", func(t *testing.T) {
			imported.mustReach(t, v1, v2)
		})

		t.Run("Requests to the Service of the same name should stay in the cluster", func(t *testing.T) {
			local := request{suite: suite, gwAddr: gwAddr, path: "/service", statusCodes: []int{200}}
			local.mustReach(t, v1)
			for range 50 {
				pod, _, err := local.send(t)
				require.NoError(t, err)
				require.Truef(t, strings.HasPrefix(pod, v1), "Request was handled by %q", pod)
			}
		})

		t.Run("Requests should be distributed between a ServiceImport and a Service by weight", func(t *testing.T) {
			weighted := request{suite: suite, gwAddr: gwAddr, path: "/weighted", statusCodes: []int{200}}
			weighted.mustReach(t, v1, v2, v3)
			weighted.mustBeDistributed(t, map[string]float64{"import": 0.7, v3: 0.3}, func(pod string, _ int) string {
				if strings.HasPrefix(pod, v1) || strings.HasPrefix(pod, v2) {
					return "import" // the distribution of its share among clusters is not specified
				}
				return pod
			})
		})

		t.Run("Requests to a ServiceImport without endpoints should fail", func(t *testing.T) {
			request{suite: suite, gwAddr: gwAddr, path: "/without-endpoints", statusCodes: unavailable}.mustSucceed(t)
		})

		t.Run("The share of requests to a ServiceImport without endpoints should fail", func(t *testing.T) {
			partly := request{suite: suite, gwAddr: gwAddr, path: "/partly-without-endpoints", statusCodes: append([]int{200}, unavailable...)}
			partly.mustReach(t, v3)
			partly.mustBeDistributed(t, map[string]float64{"unavailable": 0.3, v3: 0.7}, func(pod string, statusCode int) string {
				if statusCode != 200 {
					return "unavailable"
				}
				return pod
			})
		})

		if setImportedEndpoints(t, suite.Client, ns, false) == 0 {
			return // another controller writes the imports
		}

		t.Run("Requests to a ServiceImport that loses its endpoints should fail until it has some again", func(t *testing.T) {
			request{suite: suite, gwAddr: gwAddr, path: "/import", statusCodes: unavailable}.mustSucceed(t)
			setImportedEndpoints(t, suite.Client, ns, true)
			imported.mustReach(t, v1, v2)
		})
	},
}

// unavailable are the status codes for a backend without endpoints: an implementation SHOULD return 503.
var unavailable = []int{500, 503}

// deploymentLabel on an EndpointSlice of the manifests names the Deployment whose Pods become its endpoints.
const deploymentLabel = "gateway-conformance-deployment"

// setImportedEndpoints sets the endpoints of the EndpointSlices in the manifests to the Pods of their Deployments, or
// removes them. It returns the number of slices.
func setImportedEndpoints(t *testing.T, c client.Client, ns string, present bool) int {
	t.Helper()
	ctx := t.Context()
	slices := &discoveryv1.EndpointSliceList{}
	require.NoError(t, c.List(ctx, slices, client.InNamespace(ns), client.HasLabels{deploymentLabel}))
	for i := range slices.Items {
		slice := &slices.Items[i]
		patch := client.MergeFrom(slice.DeepCopy())
		slice.Endpoints = []discoveryv1.Endpoint{}
		pods := &corev1.PodList{}
		require.NoError(t, c.List(ctx, pods, client.InNamespace(ns), client.MatchingLabels{"app": slice.Labels[deploymentLabel]}))
		require.NotEmptyf(t, pods.Items, "Expected %q to have running Pods", slice.Labels[deploymentLabel])
		for _, pod := range pods.Items {
			for _, podIP := range pod.Status.PodIPs {
				ip, err := netip.ParseAddr(podIP.IP)
				require.NoErrorf(t, err, "Pod IP %q was not valid", podIP.IP)
				if present && ip.Is4() == (slice.AddressType == discoveryv1.AddressTypeIPv4) {
					slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{
						Addresses:  []string{podIP.IP},
						Conditions: discoveryv1.EndpointConditions{Ready: new(true), Serving: new(true), Terminating: new(false)},
					})
				}
			}
		}
		require.NoErrorf(t, c.Patch(ctx, slice, patch), "Failed to patch EndpointSlice %q", slice.Name)
	}
	return len(slices.Items)
}

// request is a request to a Gateway. Any of the status codes is expected.
type request struct {
	suite       *confsuite.ConformanceTestSuite
	gwAddr      string
	path        string
	backend     string // prefix of the name of the responding Pod
	statusCodes []int
}

func (r request) expected() http.ExpectedResponse {
	return http.ExpectedResponse{
		Request:   http.Request{Path: r.path},
		Response:  http.Response{StatusCodes: r.statusCodes},
		Backend:   r.backend,
		Namespace: confsuite.InfrastructureNamespace,
	}
}

// mustSucceed waits until requests have one of the status codes consistently.
func (r request) mustSucceed(t *testing.T) {
	t.Helper()
	http.MakeRequestAndExpectEventuallyConsistentResponse(t, r.suite.RoundTripper, r.suite.TimeoutConfig, r.gwAddr, r.expected())
}

// mustReach waits until each of the Deployments has handled a request.
func (r request) mustReach(t *testing.T, deployments ...string) {
	t.Helper()
	for _, deployment := range deployments {
		http.AwaitConvergence(t, 1, r.suite.TimeoutConfig.MaxTimeToConsistency, func(elapsed time.Duration) bool {
			for range 20 {
				pod, _, err := r.send(t)
				if err != nil {
					t.Logf("Request failed, not ready yet: %v (after %v)", err, elapsed)
					return false
				}
				if strings.HasPrefix(pod, deployment) {
					return true
				}
			}
			return false
		})
	}
}

// mustBeDistributed makes requests until the distribution of the results of the function matches the weights.
func (r request) mustBeDistributed(t *testing.T, weights map[string]float64, of func(pod string, statusCode int) string) {
	t.Helper()
	sender := weight.NewFunctionBasedSender(func() (string, error) {
		pod, statusCode, err := r.send(t)
		return of(pod, statusCode), err
	})
	for i := range weight.MaxTestRetries {
		err := weight.TestWeightedDistribution(sender, weights)
		if err == nil {
			return
		}
		t.Logf("Traffic distribution test failed (%d/%d): %s", i+1, weight.MaxTestRetries, err)
	}
	t.Fatal("Weighted distribution tests failed")
}

// send makes a request that differs from all others, for implementations that distribute by hash.
func (r request) send(t *testing.T) (pod string, statusCode int, err error) {
	expected := r.expected()
	if err := http.AddEntropy(&expected); err != nil {
		return "", 0, fmt.Errorf("error adding entropy: %w", err)
	}
	req := http.MakeRequest(t, &expected, r.gwAddr, "HTTP", "http")
	cReq, cRes, err := r.suite.RoundTripper.CaptureRoundTrip(req)
	if err != nil {
		return "", 0, fmt.Errorf("failed to roundtrip request: %w", err)
	}
	if err := http.CompareRoundTrip(t, &req, cReq, cRes, expected); err != nil {
		return "", 0, fmt.Errorf("response expectation failed for request: %w", err)
	}
	return cReq.Pod, cRes.StatusCode, nil
}
