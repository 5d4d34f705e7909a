// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/join"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/output"
	"github.com/clusterset-dns/clusterset-dns/cmd/version"
)

// versions are what runs where.
type versions struct {
	// Client is the version of this program.
	Client string `json:"client"`
	// Clusters are the selected ones, none with --client.
	Clusters []clusterVersions `json:"clusters"`
}

type clusterVersions struct {
	Context    string `json:"context"`
	Kubernetes string `json:"kubernetes,omitempty"`
	// Controller is the image of its Deployment, empty if there is none or it may not be read.
	Controller string `json:"controller,omitempty"`
	// Unreachable says why nothing is known of the cluster.
	Unreachable string `json:"unreachable,omitempty"`
}

func newVersion(o *options) *cobra.Command {
	client := false
	command := &cobra.Command{
		Use:   "version",
		Short: "Print the versions of this program and of the controllers",
		Example: `  kubectl clusterset version --client
  kubectl clusterset version --contexts east,west -o json`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := output.Validate(o.output); err != nil {
				return usageError{err}
			}
			found := versions{Client: version.Of(build), Clusters: []clusterVersions{}}
			if !client {
				clusters, err := o.clusters()
				if err != nil {
					return err
				}
				found.Clusters = versionsOf(command.Context(), clusters)
			}
			err := output.Print(o.Out, o.output, "Version", found, found.text)
			unreached := 0
			for _, each := range found.Clusters {
				if each.Unreachable != "" {
					unreached++
				}
			}
			if err == nil && unreached > 0 {
				err = fmt.Errorf("%d of %d clusters are unreachable", unreached, len(found.Clusters))
			}
			return err
		},
	}
	command.Flags().BoolVar(&client, "client", false, "print the version of this program alone, and contact no cluster")
	o.addContexts(command)
	o.addOutput(command)
	return command
}

// versionsOf asks all clusters at once.
func versionsOf(ctx context.Context, clusters []*cluster.Cluster) []clusterVersions {
	found := make([]clusterVersions, len(clusters))
	var group sync.WaitGroup
	for i, c := range clusters {
		group.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, discoverTimeout)
			defer cancel()
			found[i].Context = c.Context
			server, err := c.Discovery().ServerVersionWithContext(ctx)
			if err == nil {
				found[i].Kubernetes = server.GitVersion
			}
			if err == nil || apierrors.IsForbidden(err) {
				found[i].Controller, err = imageOf(ctx, c, c.Namespace, join.ControllerName)
			}
			if err != nil {
				found[i].Unreachable = err.Error()
			}
		})
	}
	group.Wait()
	return found
}

// imageOf is the image of the first container of a Deployment, empty if that
// does not exist or may not be read.
func imageOf(ctx context.Context, c *cluster.Cluster, namespace, name string) (string, error) {
	deployment, err := c.Kube.AppsV1().Deployments(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		deployment, err = &appsv1.Deployment{}, nil
	}
	if err != nil || len(deployment.Spec.Template.Spec.Containers) == 0 {
		return "", err
	}
	return deployment.Spec.Template.Spec.Containers[0].Image, nil
}

func (v versions) text(out io.Writer, wide bool) error {
	fmt.Fprintln(out, "Client: "+v.Client)
	var rows [][]any
	for _, each := range v.Clusters {
		if each.Unreachable != "" {
			fmt.Fprintf(out, "Context %s: unreachable: %s\n", each.Context, strings.TrimSpace(each.Unreachable))
			continue
		}
		rows = append(rows, []any{
			each.Context, output.Dash(each.Kubernetes), output.Dash(each.Controller),
		})
	}
	return output.Table(out, wide, "CONTEXT KUBERNETES CONTROLLER", rows)
}
