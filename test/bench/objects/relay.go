// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"errors"
	"fmt"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
)

// Relay watches the slices of a namespace whose service is the value of a label. The returned function gives each address
// of a changed first endpoint to that endpoint of the slice that the other cluster has of the multi-cluster service, one
// write after the other, until the context ends. Each service has one slice.
func (c *Client) Relay(ctx context.Context, namespace, label string, to *Client) (func() error, error) {
	list, err := to.DiscoveryV1().EndpointSlices(namespace).List(ctx, metav1.ListOptions{
		LabelSelector: mcsv1beta1.LabelServiceName,
	})
	if err != nil {
		return nil, err
	}
	copies := map[string]*discoveryv1.EndpointSlice{}
	for i := range list.Items {
		slice := &list.Items[i]
		slice.ResourceVersion = "" // whatever it is then
		copies[slice.Labels[mcsv1beta1.LabelServiceName]] = slice
	}
	from := c.DiscoveryV1().EndpointSlices(namespace)
	now, err := from.List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return nil, err
	}
	changes, err := from.Watch(ctx, metav1.ListOptions{LabelSelector: label, ResourceVersion: now.ResourceVersion})
	if err != nil {
		return nil, err
	}
	return func() error {
		defer changes.Stop()
		for change := range changes.ResultChan() {
			slice, ok := change.Object.(*discoveryv1.EndpointSlice)
			switch {
			case ctx.Err() != nil:
				return nil
			case !ok:
				return fmt.Errorf("the watch of EndpointSlices in %s ended: %v", namespace, change.Object)
			}
			written := copies[slice.Labels[label]]
			if written == nil {
				continue // a slice that the controllers made
			}
			for i := range written.Endpoints {
				if *written.Endpoints[i].Hostname == *slice.Endpoints[0].Hostname {
					written.Endpoints[i].Addresses = slice.Endpoints[0].Addresses
				}
			}
			_, err := to.DiscoveryV1().EndpointSlices(namespace).Update(ctx, written, metav1.UpdateOptions{})
			if err != nil && ctx.Err() == nil {
				return err
			}
		}
		if ctx.Err() == nil {
			return errors.New("the watch of EndpointSlices ended")
		}
		return nil
	}, nil
}
