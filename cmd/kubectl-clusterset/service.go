// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

func newExport(o *options, share bool) *cobra.Command {
	command := &cobra.Command{
		Use:               "export [NAMESPACE/]SERVICE",
		Short:             "Share a Service with the other clusters of the set",
		Example:           `  kubectl clusterset export shop/db`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: o.completeServices,
		RunE: func(command *cobra.Command, args []string) error {
			service, err := o.service(args[0])
			if err != nil {
				return err
			}
			clusters, err := o.clusters()
			if err != nil {
				return err
			}
			do := o.export
			if !share {
				do = o.unexport
			}
			for _, c := range clusters {
				if err := do(command.Context(), c, service); err != nil {
					return fmt.Errorf("context %s: %w", c.Context, err)
				}
			}
			return nil
		},
	}
	if !share {
		command.Use, command.Short = "unexport [NAMESPACE/]SERVICE", "Share a Service no more"
		command.Example = `  kubectl clusterset unexport shop/db --contexts east,west`
	}
	o.addContexts(command)
	o.addWait(command.Flags())
	o.addDryRun(command.Flags())
	return command
}

func (o *options) dryRunAll() []string {
	if o.dryRun {
		return []string{metav1.DryRunAll}
	}
	return nil
}

// export writes the ServiceExport and waits for what the controller says.
func (o *options) export(ctx context.Context, c *cluster.Cluster, service types.NamespacedName) error {
	err := c.CreateServiceExport(ctx, service.Namespace, service.Name, o.dryRunAll())
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("export %s: %w", service, err)
	}
	if o.dryRun {
		o.teller().Did("%s would export %s (dry run)", c.Context, service)
		return nil
	}
	return o.teller().Wait(ctx, func(ctx context.Context) (string, error) {
		found, err := c.ServiceExport(ctx, service.Namespace, service.Name)
		if err != nil {
			return "", err
		}
		if found == nil {
			return "", fmt.Errorf("somebody deleted ServiceExport %s", service)
		}
		valid := meta.FindStatusCondition(found.Status.Conditions, string(v1beta1.ServiceExportConditionValid))
		switch {
		case valid == nil || valid.ObservedGeneration < found.Generation:
			return "clusterset-controller has to look at ServiceExport " + service.String(), nil
		case valid.Reason == string(v1beta1.ServiceExportReasonNoService) && o.exists(ctx, c, service):
			return "clusterset-controller has to look at Service " + service.String(), nil
		case valid.Status != metav1.ConditionTrue:
			return "", fmt.Errorf("%s is not exported: %s", service, valid.Message)
		}
		o.teller().Did("%s exports %s", c.Context, service)
		if conflict := meta.FindStatusCondition(found.Status.Conditions, string(v1beta1.ServiceExportConditionConflict)); conflict != nil && conflict.Status == metav1.ConditionTrue {
			o.teller().Say("! %s", conflict.Message)
		}
		return "", nil
	})
}

// exists tells whether the Service does, of which the controller may hear later than of its export.
func (o *options) exists(ctx context.Context, c *cluster.Cluster, service types.NamespacedName) bool {
	_, err := c.Kube.CoreV1().Services(service.Namespace).Get(ctx, service.Name, metav1.GetOptions{})
	return err == nil
}

// unexport deletes the ServiceExport and waits until nothing is published.
func (o *options) unexport(ctx context.Context, c *cluster.Cluster, service types.NamespacedName) error {
	found, err := c.ServiceExport(ctx, service.Namespace, service.Name)
	if err != nil {
		return err
	}
	if found == nil {
		o.teller().Did("%s does not export %s", c.Context, service)
		return nil
	}
	if err := c.DeleteServiceExport(ctx, service.Namespace, service.Name, o.dryRunAll()); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("unexport %s: %w", service, err)
	}
	if o.dryRun {
		o.teller().Did("%s would not export %s any more (dry run)", c.Context, service)
		return nil
	}
	identity, err := c.Identify(ctx)
	if err != nil {
		return err
	}
	selector := fmt.Sprintf("%s=%s,%s=%s,%s=%s", export.LabelService, service.Name, export.LabelSourceCluster, identity.ID, discoveryv1.LabelManagedBy, export.Manager)
	return o.teller().Wait(ctx, func(ctx context.Context) (string, error) {
		slices, err := c.Kube.DiscoveryV1().EndpointSlices(service.Namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
		if err != nil {
			return "", err
		}
		if len(slices.Items) > 0 {
			return "clusterset-controller has to take back what it published of " + service.String(), nil
		}
		o.teller().Did("%s does not export %s any more", c.Context, service)
		return "", nil
	})
}
