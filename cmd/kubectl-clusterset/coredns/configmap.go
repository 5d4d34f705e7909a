// SPDX-License-Identifier: Apache-2.0

package coredns

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
)

// zones are those for which Enable added the plugin.
func (c *change) zones() []string {
	return strings.FieldsFunc(c.configMap.Annotations[AnnotationZones], func(r rune) bool { return r == ',' })
}

// name is a zone in annotations and messages.
func name(zone string) string { return strings.TrimSuffix(normal(zone), ".") }

// setCorefile writes the Corefile and the zones that Enable added to it, and restarts the pods, unless nothing changes.
// The pods are marked with its digest while there are zones.
func (c *change) setCorefile(ctx context.Context, text string, zones []string) error {
	before, zonesBefore := c.configMap.Data[Key], c.zones()
	if text == before && slices.Equal(zones, zonesBefore) {
		return nil
	}
	if err := c.writeCorefile(ctx, text, zones); err != nil {
		return err
	}
	digest, had := c.deployment.Spec.Template.Annotations[AnnotationCorefile]
	old := map[string]any{AnnotationCorefile: nil}
	if had {
		old[AnnotationCorefile] = digest
	}
	c.undo = append(c.undo, func(ctx context.Context) error {
		return errors.Join(c.writeCorefile(ctx, before, zonesBefore), c.patch(ctx, nil, "", old))
	})
	mark := map[string]any{AnnotationCorefile: nil}
	if len(zones) > 0 {
		sum := sha256.Sum256([]byte(text))
		mark[AnnotationCorefile] = hex.EncodeToString(sum[:8])
	}
	if err := c.patch(ctx, nil, "", mark); err != nil {
		return err
	}
	if err := c.awaitRollout(ctx); err != nil {
		return err
	}
	c.Teller.Wrote(c.DryRun, "ConfigMap %s/%s has the new Corefile, and all pods use it", Namespace, Name)
	return nil
}

// writeCorefile fails if the ConfigMap was changed meanwhile.
func (c *change) writeCorefile(ctx context.Context, text string, zones []string) error {
	changed := c.configMap.DeepCopy()
	changed.Data[Key] = text
	delete(changed.Annotations, AnnotationZones)
	if len(zones) > 0 {
		metav1.SetMetaDataAnnotation(&changed.ObjectMeta, AnnotationZones, strings.Join(zones, ","))
	}
	updated, err := c.Cluster.Kube.CoreV1().ConfigMaps(Namespace).Update(ctx, changed,
		metav1.UpdateOptions{FieldManager: cluster.FieldManager, DryRun: cluster.DryRun(c.DryRun)})
	if err != nil {
		return fmt.Errorf("ConfigMap %s/%s: %w", Namespace, Name, err)
	}
	if !c.DryRun {
		c.configMap = updated
	}
	return nil
}
