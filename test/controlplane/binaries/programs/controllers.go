// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"os"
	"os/signal"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/client-go/util/keyutil"
	"k8s.io/controller-manager/pkg/informerfactory"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller/certificates/rootcacertpublisher"
	"k8s.io/kubernetes/pkg/controller/clusterroleaggregation"
	"k8s.io/kubernetes/pkg/controller/daemon"
	"k8s.io/kubernetes/pkg/controller/deployment"
	"k8s.io/kubernetes/pkg/controller/endpoint"
	"k8s.io/kubernetes/pkg/controller/endpointslice"
	"k8s.io/kubernetes/pkg/controller/endpointslicemirroring"
	"k8s.io/kubernetes/pkg/controller/garbagecollector"
	"k8s.io/kubernetes/pkg/controller/namespace"
	"k8s.io/kubernetes/pkg/controller/replicaset"
	serviceaccountcontroller "k8s.io/kubernetes/pkg/controller/serviceaccount"
	"k8s.io/kubernetes/pkg/controller/servicecidrs"
	"k8s.io/kubernetes/pkg/controller/statefulset"
	"k8s.io/kubernetes/pkg/serviceaccount"
)

// As kube-controller-manager has them by default.
const (
	workers         = 5
	endpointsLimit  = 100 // of a slice that the controller makes
	mirroringLimit  = 1000
	namespaceResync = 5 * time.Minute
	collectorResync = 30 * time.Second
)

// runControllers runs those controllers of Kubernetes that make Services, pods and namespaces live, as
// kube-controller-manager does with all their like. They need two thirds fewer packages beside an API server's: none for
// volumes, clouds and real nodes. They have all rights, and run until the process is killed.
func runControllers(args []string) error {
	flags := flag.NewFlagSet("controllers", flag.ExitOnError)
	kubeconfig := flags.String("kubeconfig", "", "of an administrator")
	rootCA := flags.String("root-ca-file", "", "the certificate that every namespace gets")
	key := flags.String("service-account-private-key-file", "", "the key that signs tokens in Secrets")
	if err := flags.Parse(args); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return startControllers(ctx, *kubeconfig, *rootCA, *key)
}

// runner is what most controllers are.
type runner interface {
	Run(ctx context.Context, workers int)
}

func startControllers(ctx context.Context, kubeconfig, rootCAFile, keyFile string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	config.QPS, config.Burst = 1000, 2000
	metadataClient, err := metadata.NewForConfig(config)
	if err != nil {
		return err
	}
	typed := rest.CopyConfig(config)
	typed.ContentType = "application/vnd.kubernetes.protobuf"
	client, err := kubernetes.NewForConfig(typed)
	if err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	core, apps := factory.Core().V1(), factory.Apps().V1()
	controllers := []runner{
		endpoint.NewEndpointController(ctx, core.Pods(), core.Services(), core.Endpoints(), client, 0),
		endpointslice.NewController(ctx, core.Pods(), core.Services(), core.Nodes(),
			factory.Discovery().V1().EndpointSlices(), endpointsLimit, client, 0),
		endpointslicemirroring.NewController(ctx, core.Endpoints(), factory.Discovery().V1().EndpointSlices(),
			core.Services(), mirroringLimit, client, 0),
		namespace.NewNamespaceController(ctx, client, metadataClient,
			client.Discovery().ServerPreferredNamespacedResources, core.Namespaces(), namespaceResync,
			corev1.FinalizerKubernetes),
		replicaset.NewReplicaSetController(ctx, apps.ReplicaSets(), core.Pods(), client, replicaset.BurstReplicas),
		statefulset.NewStatefulSetController(ctx, core.Pods(), apps.StatefulSets(), core.PersistentVolumeClaims(),
			apps.ControllerRevisions(), client),
		servicecidrs.NewController(ctx, factory.Networking().V1().ServiceCIDRs(),
			factory.Networking().V1().IPAddresses(), client),
		clusterroleaggregation.NewClusterRoleAggregation(factory.Rbac().V1().ClusterRoles(), client.RbacV1()),
	}
	rootCA, err1 := os.ReadFile(rootCAFile)
	signingKey, err2 := keyutil.PrivateKeyFromFile(keyFile)
	generator, err3 := serviceaccount.JWTTokenGenerator(serviceaccount.LegacyIssuer, signingKey)
	failed := errors.Join(err1, err2, err3)
	add := func(controller runner, err error) {
		controllers, failed = append(controllers, controller), errors.Join(failed, err)
	}
	add(deployment.NewDeploymentController(ctx, apps.Deployments(), apps.ReplicaSets(), core.Pods(), client))
	add(daemon.NewDaemonSetsController(ctx, apps.DaemonSets(), apps.ControllerRevisions(), core.Pods(), core.Nodes(), client,
		flowcontrol.NewBackOff(time.Second, 15*time.Minute)))
	add(rootcacertpublisher.NewPublisher(core.ConfigMaps(), core.Namespaces(), client, rootCA))
	add(serviceaccountcontroller.NewServiceAccountsController(klog.FromContext(ctx), core.ServiceAccounts(), core.Namespaces(),
		client, serviceaccountcontroller.DefaultServiceAccountsControllerOptions()))
	add(serviceaccountcontroller.NewTokensController(klog.FromContext(ctx), core.ServiceAccounts(), core.Secrets(), client,
		serviceaccountcontroller.TokensControllerOptions{TokenGenerator: generator, RootCA: rootCA}))
	if failed != nil {
		return failed
	}

	// The garbage collector watches all there is, and looks for new kinds from time to time.
	metadataFactory := metadatainformer.NewSharedInformerFactory(metadataClient, 0)
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client.Discovery()))
	started := make(chan struct{})
	collector, err := garbagecollector.NewGarbageCollector(ctx, client, metadataClient, mapper,
		garbagecollector.DefaultIgnoredResources(),
		informerfactory.NewInformerFactory(factory, metadataFactory), started)
	if err != nil {
		return err
	}
	for _, controller := range controllers {
		go controller.Run(ctx, workers)
	}
	go collector.Run(ctx, 4*workers, collectorResync)
	go collector.Sync(ctx, client.Discovery(), collectorResync)
	factory.Start(ctx.Done())
	metadataFactory.Start(ctx.Done())
	close(started)
	<-ctx.Done()
	return nil
}
