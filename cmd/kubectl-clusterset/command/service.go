// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
)

func newExport(o *options, share bool) *cobra.Command {
	command := &cobra.Command{
		Use:   "export NAMESPACE/SERVICE",
		Short: "Export a Service to the other clusters of the set",
		Example: `  kubectl clusterset export shop/db
  kubectl clusterset export shop/db --contexts east,west`,
		Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			service, clusters, err := o.service(args[0])
			if err != nil {
				return err
			}
			do := o.unexport
			if share {
				do, err = o.export, exportable(command.Context(), clusters, service)
			}
			for i := 0; i < len(clusters) && err == nil; i++ {
				if err = do(command.Context(), clusters[i], service); err != nil {
					err = fmt.Errorf("context %s: %w", clusters[i].Context, err)
				}
			}
			return err
		},
	}
	if share {
		return o.with(command, "contexts", "timeout", "dry-run")
	}
	command.Use, command.Short = "unexport NAMESPACE/SERVICE", "Stop exporting a Service"
	command.Example = strings.ReplaceAll(command.Example, "export", "unexport")
	return o.with(command, "contexts", "dry-run")
}

// exportable returns an error if a cluster lacks the Service, so that nothing is written. Users who may not read Services learn
// it from the controller.
func exportable(ctx context.Context, clusters []*cluster.Cluster, service types.NamespacedName) error {
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
	err := c.CreateServiceExport(ctx, metav1.ObjectMeta{Namespace: service.Namespace, Name: service.Name}, cluster.DryRun(o.dryRun))
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("export %s: %w", service, err)
	}
	if o.dryRun {
		o.teller().Wrote(true, "%s exports %s", c.Context, service)
		return nil
	}
	client, _, err := c.ServiceExports(ctx, service.Namespace)
	if err != nil {
		return err
	}
	return o.teller().Wait(ctx, func(ctx context.Context) (string, error) {
		object, err := client.Get(ctx, service.Name, metav1.GetOptions{})
		if err != nil {
			return "", err
		}
		found := &v1beta1.ServiceExport{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, found); err != nil {
			return "", err
		}
		valid := meta.FindStatusCondition(found.Status.Conditions, string(v1beta1.ServiceExportConditionValid))
		switch {
		case valid == nil || valid.ObservedGeneration < found.Generation:
			return "waiting for clusterset-controller to reconcile ServiceExport " + service.String(), nil
		case valid.Reason == string(v1beta1.ServiceExportReasonNoService): // it exists, but the controller may see it later
			return "waiting for clusterset-controller to observe Service " + service.String(), nil
		case valid.Status != metav1.ConditionTrue:
			return "", fmt.Errorf("%s is not exported: %s", service, valid.Message)
		}
		o.teller().Did("%s exports %s", c.Context, service)
		conflict := meta.FindStatusCondition(found.Status.Conditions, string(v1beta1.ServiceExportConditionConflict))
		if conflict != nil && conflict.Status == metav1.ConditionTrue {
			o.teller().Say("! %s", conflict.Message)
		}
		return "", nil
	})
}

// unexport deletes the ServiceExport.
func (o *options) unexport(ctx context.Context, c *cluster.Cluster, service types.NamespacedName) error {
	client, _, err := c.ServiceExports(ctx, service.Namespace)
	if err == nil {
		err = client.Delete(ctx, service.Name, metav1.DeleteOptions{DryRun: cluster.DryRun(o.dryRun)})
	}
	switch {
	case apierrors.IsNotFound(err):
		o.teller().Did("%s does not export %s", c.Context, service)
		return nil
	case err != nil:
		return fmt.Errorf("unexport %s: %w", service, err)
	}
	o.teller().Wrote(o.dryRun, "%s no longer exports %s", c.Context, service)
	return nil
}
