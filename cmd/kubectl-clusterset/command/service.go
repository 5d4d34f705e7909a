// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/names"
)

func newExport(o *options, share bool) *cobra.Command {
	var selector string
	command := &cobra.Command{
		Use:   "export [NAMESPACE/]SERVICE",
		Short: "Export a Service to the other clusters of the set",
		Example: `  kubectl clusterset export shop/db
  kubectl clusterset export -n shop -l tier=backend --contexts east,west`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: o.completeServices,
		RunE: func(command *cobra.Command, args []string) error {
			if (len(args) == 1) == (selector != "") {
				return usageError{fmt.Errorf("name a SERVICE or select Services with --selector: see %s --help",
					command.CommandPath())}
			}
			// Before clusters are opened: the namespace is that of the current context.
			service, err := o.serviceOrNamespace(args)
			if err != nil {
				return err
			}
			clusters, err := o.clusters()
			if err != nil {
				return err
			}
			services, err := o.selected(command.Context(), clusters, service, selector)
			if err != nil {
				return err
			}
			do := o.unexport
			if share {
				do = o.export
				if selector == "" {
					err = o.exportable(command.Context(), clusters, service)
				}
			}
			for i, c := range clusters {
				for _, service := range services[i] {
					if err != nil {
						return err
					}
					if err = do(command.Context(), c, service); err != nil {
						err = fmt.Errorf("context %s: %w", c.Context, err)
					}
				}
			}
			return err
		},
	}
	if !share {
		command.Use, command.Short = "unexport [NAMESPACE/]SERVICE", "Stop exporting a Service"
		command.Example = `  kubectl clusterset unexport shop/db --contexts east,west
  kubectl clusterset unexport -n shop -l tier=backend`
	}
	command.Flags().StringVarP(&selector, "selector", "l", "",
		"all Services of the namespace with these `labels`, in each cluster those that it has")
	o.addContexts(command)
	o.addNamespace(command, serviceNamespace)
	o.addWait(command.Flags())
	o.addDryRun(command.Flags())
	return command
}

// serviceOrNamespace is the named service, or one without a name in the namespace
// of the flags.
func (o *options) serviceOrNamespace(args []string) (types.NamespacedName, error) {
	if len(args) > 0 {
		return o.service(args[0])
	}
	namespace, _, err := o.config().Namespace()
	return types.NamespacedName{Namespace: namespace}, err
}

// selected are the Services to export for each cluster: the named one, or those
// of the namespace that a selector matches there. Services that the controller
// made do not count.
func (o *options) selected(ctx context.Context, clusters []*cluster.Cluster, service types.NamespacedName,
	selector string,
) ([][]types.NamespacedName, error) {
	services := make([][]types.NamespacedName, len(clusters))
	if selector == "" {
		for i := range services {
			services[i] = []types.NamespacedName{service}
		}
		return services, nil
	}
	namespace := service.Namespace
	for i, c := range clusters {
		list, err := c.Kube.CoreV1().Services(namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
		if err != nil {
			return nil, fmt.Errorf("context %s: Services of namespace %s: %w", c.Context, namespace, err)
		}
		for j := range list.Items {
			if found := &list.Items[j]; !names.IsManaged(found) {
				services[i] = append(services[i], types.NamespacedName{Namespace: namespace, Name: found.Name})
			}
		}
	}
	if len(union(services)) == 0 {
		return nil, fmt.Errorf("no Service in namespace %s matches %s: use -n for another namespace", namespace, selector)
	}
	return services, nil
}

// union has each Service once, sorted.
func union(services [][]types.NamespacedName) []types.NamespacedName {
	all := slices.Concat(services...)
	slices.SortFunc(all, func(a, b types.NamespacedName) int { return strings.Compare(a.String(), b.String()) })
	return slices.Compact(all)
}

// exportable returns an error if a cluster lacks the Service, so that nothing is
// written. Who may not read Services learns it from the controller.
func (o *options) exportable(ctx context.Context, clusters []*cluster.Cluster, service types.NamespacedName) error {
	for _, c := range clusters {
		_, err := c.Kube.CoreV1().Services(service.Namespace).Get(ctx, service.Name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			return fmt.Errorf("context %s: Service %s does not exist, nothing was exported: create it, or select other "+
				"clusters with --contexts", c.Context, service)
		case err != nil && !apierrors.IsForbidden(err):
			return fmt.Errorf("context %s: Service %s: %w", c.Context, service, err)
		}
	}
	return nil
}

// export writes the ServiceExport and waits for the controller's verdict.
func (o *options) export(ctx context.Context, c *cluster.Cluster, service types.NamespacedName) error {
	if err := c.CreateServiceExport(ctx, service.Namespace, service.Name, cluster.DryRun(o.dryRun)); err != nil &&
		!apierrors.IsAlreadyExists(err) {
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
			return "", fmt.Errorf("ServiceExport %s was deleted by another client", service)
		}
		valid := meta.FindStatusCondition(found.Status.Conditions, string(v1beta1.ServiceExportConditionValid))
		switch {
		case valid == nil || valid.ObservedGeneration < found.Generation:
			return "waiting for clusterset-controller to reconcile ServiceExport " + service.String(), nil
		case valid.Reason == string(v1beta1.ServiceExportReasonNoService) && o.exists(ctx, c, service):
			return "waiting for clusterset-controller to observe Service " + service.String(), nil
		case valid.Status != metav1.ConditionTrue:
			return "", fmt.Errorf("%s is not exported: %s", service, valid.Message)
		}
		o.teller().Did("%s exports %s", c.Context, service)
		if conflict := meta.FindStatusCondition(found.Status.Conditions,
			string(v1beta1.ServiceExportConditionConflict)); conflict != nil &&
			conflict.Status == metav1.ConditionTrue {
			o.teller().Say("! %s", conflict.Message)
		}
		return "", nil
	})
}

// exists reports whether the Service does, of which the controller may hear later than of its export.
func (o *options) exists(ctx context.Context, c *cluster.Cluster, service types.NamespacedName) bool {
	_, err := c.Kube.CoreV1().Services(service.Namespace).Get(ctx, service.Name, metav1.GetOptions{})
	return err == nil
}

// unexport deletes the ServiceExport. It waits until nothing is published if the
// user may look at that.
func (o *options) unexport(ctx context.Context, c *cluster.Cluster, service types.NamespacedName) error {
	err := c.DeleteServiceExport(ctx, service.Namespace, service.Name, cluster.DryRun(o.dryRun))
	switch {
	case apierrors.IsNotFound(err):
		o.teller().Did("%s does not export %s", c.Context, service)
		return nil
	case err != nil:
		return fmt.Errorf("unexport %s: %w", service, err)
	case o.dryRun:
		o.teller().Did("%s would stop exporting %s (dry run)", c.Context, service)
		return nil
	}
	identity, err := c.Identify(ctx)
	if err == nil {
		err = o.awaitWithdrawal(ctx, c, service, identity)
	}
	if apierrors.IsForbidden(err) || errors.Is(err, cluster.ErrNeverRan) {
		o.teller().Say("ServiceExport %s is deleted. Not waiting for clusterset-controller to withdraw the export: %v",
			service, err)
		err = nil
	}
	if err == nil {
		o.teller().Did("%s no longer exports %s", c.Context, service)
	}
	return err
}

func (o *options) awaitWithdrawal(ctx context.Context, c *cluster.Cluster, service types.NamespacedName,
	of cluster.Identity,
) error {
	selector := fmt.Sprintf("%s=%s,%s=%s,%s", names.Service, service.Name, names.SourceCluster, of.ID, of.Set.Slices())
	return o.teller().Wait(ctx, func(ctx context.Context) (string, error) {
		slices, err := c.Kube.DiscoveryV1().EndpointSlices(service.Namespace).List(ctx,
			metav1.ListOptions{LabelSelector: selector})
		if err != nil || len(slices.Items) == 0 {
			return "", err
		}
		return "waiting for clusterset-controller to withdraw the export of " + service.String(), nil
	})
}
