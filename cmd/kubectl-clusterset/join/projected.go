// SPDX-License-Identifier: Apache-2.0

package join

import (
	"context"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// projected returns the audience of the token of the kubelet with which the reader's Deployment reads the source, empty
// for none. Without the right to read the Deployment, there is none.
func projected(ctx context.Context, l *peering) string {
	deployment, err := l.reader.Kube.AppsV1().Deployments(l.reader.Namespace).Get(ctx, ControllerName, metav1.GetOptions{})
	if err != nil {
		return ""
	}
	pod := deployment.Spec.Template.Spec
	named := false
	for i := range pod.Containers {
		for _, argument := range pod.Containers[i].Args {
			named = named || strings.HasPrefix(argument, "--member="+l.sourceID+"=")
		}
	}
	for i := range pod.Volumes {
		if !named || pod.Volumes[i].Projected == nil {
			continue
		}
		for _, source := range pod.Volumes[i].Projected.Sources {
			if token := source.ServiceAccountToken; token != nil && token.Path == l.sourceID {
				return token.Audience
			}
		}
	}
	return ""
}
