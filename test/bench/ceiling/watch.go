// SPDX-License-Identifier: Apache-2.0

package ceiling

import (
	"context"
	"fmt"
	"os"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	discoveryv1client "k8s.io/client-go/kubernetes/typed/discovery/v1"
	"k8s.io/client-go/tools/clientcmd"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
)

// startWatch watches until the context ends. A watch that the API server ends begins anew, from that moment on.
func startWatch(ctx context.Context, kubeconfig string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return fmt.Errorf("kubeconfig %s: %w", kubeconfig, err)
	}
	config.ContentType = "application/vnd.kubernetes.protobuf"
	config.AcceptContentTypes = config.ContentType
	client, err := discoveryv1client.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("make a client of %s: %w", config.Host, err)
	}
	begin := func() (watch.Interface, error) {
		// The newest state, without what there is already.
		return client.EndpointSlices(metav1.NamespaceAll).Watch(ctx, metav1.ListOptions{
			LabelSelector: mcsv1beta1.LabelServiceName, SendInitialEvents: new(false), ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
		})
	}
	events, err := begin()
	if err != nil {
		return fmt.Errorf("watch EndpointSlices: %w", err)
	}
	go func() {
		for {
			for range events.ResultChan() {
				continue // it is dropped
			}
			if ctx.Err() != nil {
				return
			}
			if events, err = begin(); err != nil {
				fmt.Fprintln(os.Stderr, "watch EndpointSlices:", err)
				os.Exit(1) // a measurement without it would be wrong
			}
		}
	}()
	return nil
}
