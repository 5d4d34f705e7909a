// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"context"
	"fmt"
	"log"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/clusterset-dns/clusterset-dns/test/controlplane"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/link"
)

func Example() {
	ctx := context.Background()
	clusters, err := controlplane.StartAll(ctx, controlplane.Options{Name: "east"}, controlplane.Options{Name: "west", Zones: []string{"west-a"}})
	if err != nil {
		log.Fatal(err)
	}
	defer func() {
		if err := controlplane.StopAll(clusters...); err != nil {
			log.Print(err)
		}
	}()

	for _, cluster := range clusters {
		nodes, err := cluster.Client().CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			log.Print(err)
			return
		}
		for _, node := range nodes.Items {
			fmt.Println(node.Name, node.Labels["topology.kubernetes.io/zone"])
		}
	}

	// The way from west to the API server of east can be cut, while east itself goes on.
	east := clusters[0]
	fromWest, err := east.Remote("west")
	if err != nil {
		log.Print(err)
		return
	}
	client, err := kubernetes.NewForConfig(fromWest.Config())
	if err != nil {
		log.Print(err)
		return
	}
	fromWest.CutOff(link.Both)
	arrived := make(chan error)
	go func() {
		_, err := client.CoreV1().Namespaces().Get(ctx, "default", metav1.GetOptions{})
		arrived <- err
	}()
	_, err = east.Client().CoreV1().Namespaces().Get(ctx, "default", metav1.GetOptions{})
	fmt.Println("in east:", err)
	select {
	case err := <-arrived:
		fmt.Println("from west, over a cut link:", err)
	default:
	}
	fromWest.Reconnect()
	fmt.Println("from west:", <-arrived)

	// Output:
	// east-0 east-a
	// east-1 east-b
	// west-0 west-a
	// in east: <nil>
	// from west: <nil>
}
