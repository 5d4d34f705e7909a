// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"io/fs"
	"testing"

	"github.com/go-logr/logr"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	upstream "sigs.k8s.io/gateway-api/conformance"
	"sigs.k8s.io/gateway-api/conformance/utils/config"
	"sigs.k8s.io/gateway-api/conformance/utils/suite"
	"sigs.k8s.io/gateway-api/pkg/features"
	"sigs.k8s.io/mcs-api/pkg/apis/v1alpha1"

	"github.com/clusterset-dns/clusterset-dns/test/clusterset"
	"github.com/clusterset-dns/clusterset-dns/test/gateway/conformance"
	"github.com/clusterset-dns/clusterset-dns/test/gateway/conformance/tests"
)

// TestImportsByHand runs the tests like an implementation without a Multi-Cluster Services API.
func TestImportsByHand(t *testing.T) {
	run(t, start(t, "alone"), tests.ConformanceTests)
}

// TestClusterSet runs the tests with imports by our controllers, from Services that east and west export. West has only
// the pods of infra-backend-v2.
func TestClusterSet(t *testing.T) {
	planes := start(t, "east", "west")
	east, west := planes[0], planes[1]
	join(t, east, west)
	apply(t, west, "testdata/west.yaml")
	apply(t, east, "testdata/east.yaml")
	ours := make([]suite.ConformanceTest, len(tests.ConformanceTests))
	for i, test := range tests.ConformanceTests {
		test.Manifests = test.Manifests[:1] // the other manifests have manually written imports
		ours[i] = test
	}
	run(t, planes, ours)
}

// run runs the tests like Gateway API's suite, after its setup, with the Gateway in the first cluster.
func run(t *testing.T, planes []*clusterset.Cluster, all []suite.ConformanceTest) {
	at := planes[0]
	log.SetLogger(logr.Discard())
	must(t, gatewayv1.Install(clientgoscheme.Scheme))
	must(t, v1alpha1.Install(clientgoscheme.Scheme))
	must(t, apiextensionsv1.AddToScheme(clientgoscheme.Scheme))
	c, err := client.New(at.Config(), client.Options{})
	must(t, err)
	startGateway(t, at, c)
	serveEcho(t, planes)
	clientset, err := kubernetes.NewForConfig(at.Config())
	must(t, err)
	timeouts := config.DefaultTimeoutConfig()
	timeouts.TestIsolation = 0
	s, err := suite.NewConformanceTestSuite(suite.ConformanceOptions{
		Client: c, Clientset: clientset, RestConfig: at.Config(),
		ManifestFS: []fs.FS{upstream.Manifests, conformance.Manifests},
		ConfigurableOptions: suite.ConfigurableOptions{
			GatewayClassName: className, TimeoutConfig: timeouts, CleanupTestResources: true,
			SupportedFeatures: []features.FeatureName{
				features.SupportGateway, features.SupportHTTPRoute, features.SupportReferenceGrant, tests.SupportServiceImport,
			},
		},
	})
	must(t, err)
	s.Setup(t, all)
	must(t, s.Run(t, all))
}
