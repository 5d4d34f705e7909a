// SPDX-License-Identifier: Apache-2.0

// Package coredns puts the plugin multicluster into the CoreDNS that a cluster
// has, as kubeadm installs it, and takes it out again.
package coredns

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/progress"
	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

// Where CoreDNS is.
const (
	Namespace = metav1.NamespaceSystem
	// Name is that of the Deployment, the ConfigMap and the container.
	Name = "coredns"
	// Key is that of the Corefile in the ConfigMap.
	Key = "Corefile"
	// Rights is the name of the ClusterRole and the binding that are made.
	Rights = "kubectl-clusterset-coredns"
)

// Annotations by which a later run knows what an earlier one did.
const (
	// AnnotationBefore on the Deployment is the image that was there before,
	// AnnotationImage the one that was put in its place.
	AnnotationBefore = export.Domain + "/coredns-image-before"
	AnnotationImage  = export.Domain + "/coredns-image"
	// AnnotationCorefile on the pods is a digest of the Corefile that they were
	// started for.
	AnnotationCorefile = export.Domain + "/corefile"
	// AnnotationZones on the ConfigMap are the zones for which Enable added the
	// plugin to the Corefile, separated by commas.
	AnnotationZones = export.Domain + "/coredns-zones"
)

// Options say what to do where.
type Options struct {
	Cluster *cluster.Cluster
	// Image is that of CoreDNS with the plugin.
	Image  string
	Zone   string
	DryRun bool
	Teller progress.Teller
}

// A change is one that is under way.
type change struct {
	Options
	deployment *appsv1.Deployment
	container  string
	configMap  *corev1.ConfigMap
	corefile   *Corefile
	// undo takes back what was done, the last first.
	undo []func(context.Context) error
}

// Enable puts the plugin into CoreDNS. What fails is taken back.
func Enable(ctx context.Context, o Options) error {
	c, err := o.look(ctx)
	if err != nil {
		return err
	}
	version, err := o.Cluster.MCSVersion(ctx)
	if err != nil {
		return err
	}
	if version == "" {
		return fmt.Errorf("the MCS API is not served: kubectl clusterset manifest crds | kubectl --context %s apply -f -", o.Cluster.Context)
	}
	text, err := c.corefile.Enable(o.Zone)
	if err != nil {
		return err
	}
	return c.orUndo(ctx, func() error {
		if err := c.grant(ctx); err != nil {
			return err
		}
		// The stock image does not know the plugin, so that the image is first.
		if err := c.setImage(ctx, o.Image); err != nil {
			return err
		}
		return c.setCorefile(ctx, text, append(c.zones(), name(o.Zone)))
	})
}

// Disable takes out of CoreDNS what Enable put there for a zone. If the Corefile
// has the plugin no more, it also puts the image back that Enable found, and
// removes the rights and the revisions that both made of the Deployment. What
// fails is taken back.
func Disable(ctx context.Context, o Options) error {
	c, err := o.look(ctx)
	if err != nil {
		return err
	}
	zones, text := c.zones(), c.corefile.String()
	switch at := slices.Index(zones, name(o.Zone)); {
	case at >= 0:
		zones, text = slices.Delete(zones, at, at+1), c.corefile.Disable(o.Zone)
	case c.corefile.Serves(o.Zone):
		o.Teller.Say("The directive %s for %s in ConfigMap %s/%s was not added by `coredns enable`: it stays", plugin,
			name(o.Zone), Namespace, Name)
	}
	after, err := ParseCorefile(text)
	if err != nil {
		return err
	}
	err = c.orUndo(ctx, func() error {
		if err := c.setCorefile(ctx, text, zones); err != nil || after.Uses() {
			return err
		}
		if err := c.restoreImage(ctx); err != nil {
			return err
		}
		return c.revoke(ctx)
	})
	if err != nil {
		return err
	}
	if after.Uses() {
		o.Teller.Say("The Corefile still has the plugin %s, so that the image and the rights of CoreDNS stay: remove the plugin from ConfigMap %s/%s, and run this again", plugin, Namespace, Name)
		return nil
	}
	return c.forget(ctx)
}

// zones are those for which Enable added the plugin.
func (c *change) zones() []string {
	return strings.FieldsFunc(c.configMap.Annotations[AnnotationZones], func(r rune) bool { return r == ',' })
}

// name is a zone as annotations and messages have it.
func name(zone string) string { return strings.TrimSuffix(normal(zone), ".") }

// look reads what is there.
func (o Options) look(ctx context.Context) (*change, error) {
	c := &change{Options: o}
	var err error
	if c.deployment, err = o.Cluster.Kube.AppsV1().Deployments(Namespace).Get(ctx, Name,
		metav1.GetOptions{}); err != nil {
		return nil, fmt.Errorf("this is for a CoreDNS as kubeadm installs it: %w", err)
	}
	if c.configMap, err = o.Cluster.Kube.CoreV1().ConfigMaps(Namespace).Get(ctx, Name,
		metav1.GetOptions{}); err != nil {
		return nil, fmt.Errorf("this is for a CoreDNS as kubeadm installs it: %w", err)
	}
	container := Container(c.deployment)
	if container == nil {
		return nil, fmt.Errorf("deployment %s/%s has no container %s", Namespace, Name, Name)
	}
	c.container = container.Name
	text, ok := c.configMap.Data[Key]
	if !ok {
		return nil, fmt.Errorf("ConfigMap %s/%s has no key %s", Namespace, Name, Key)
	}
	c.corefile, err = ParseCorefile(text)
	return c, err
}

// Container is the one of CoreDNS, nil where the Deployment has none.
func Container(deployment *appsv1.Deployment) *corev1.Container {
	containers := deployment.Spec.Template.Spec.Containers
	at := slices.IndexFunc(containers, func(c corev1.Container) bool { return c.Name == Name })
	switch {
	case at >= 0:
		return &containers[at]
	case len(containers) == 1:
		return &containers[0]
	}
	return nil
}

// undoTimeout bounds taking back.
const undoTimeout = time.Minute

// orUndo does something, and takes back what was done of it where it fails,
// also where the person who asked for it gives up.
func (c *change) orUndo(ctx context.Context, do func() error) error {
	err := do()
	if err == nil || len(c.undo) == 0 {
		return err
	}
	c.Teller.Say("It failed; putting all back as it was")
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTimeout)
	defer cancel()
	failed := []error{err}
	for _, undo := range slices.Backward(c.undo) {
		if undoErr := undo(ctx); undoErr != nil {
			failed = append(failed, fmt.Errorf("putting it back as it was: %w", undoErr))
		}
	}
	if len(failed) == 1 {
		return fmt.Errorf("%w (all is as it was before)", err)
	}
	return errors.Join(failed...)
}

func (c *change) dryRun() []string {
	if c.DryRun {
		return []string{metav1.DryRunAll}
	}
	return nil
}

// did tells what was done.
func (c *change) did(format string, args ...any) {
	if c.DryRun {
		format = "dry run: " + format
	}
	c.Teller.Did(format, args...)
}

// setImage puts an image into the Deployment, and notes which one was there.
func (c *change) setImage(ctx context.Context, image string) error {
	now := Container(c.deployment).Image
	if now == image {
		return nil
	}
	annotations := map[string]any{AnnotationImage: image}
	before, noted := c.deployment.Annotations[AnnotationBefore]
	if !noted || c.deployment.Annotations[AnnotationImage] != now {
		before, noted = now, false
		annotations[AnnotationBefore] = before
	}
	old := map[string]any{AnnotationImage: nil, AnnotationBefore: nil}
	if noted {
		old = map[string]any{AnnotationImage: now, AnnotationBefore: before}
	}
	c.undo = append(c.undo, func(ctx context.Context) error { return c.patch(ctx, old, now, nil) })
	if err := c.patch(ctx, annotations, image, nil); err != nil {
		return err
	}
	if err := c.awaitRollout(ctx); err != nil {
		return err
	}
	c.did("Deployment %s/%s runs %s", Namespace, Name, image)
	return nil
}

// restoreImage puts the image back that was there before, unless somebody has
// put another one there since.
func (c *change) restoreImage(ctx context.Context) error {
	now, before := Container(c.deployment).Image, c.deployment.Annotations[AnnotationBefore]
	switch {
	case before == "" || c.deployment.Annotations[AnnotationImage] == "":
		c.Teller.Say("The image of Deployment %s/%s was not put there by `coredns enable`: it stays %s", Namespace,
			Name, now)
		return nil
	case c.deployment.Annotations[AnnotationImage] != now:
		c.Teller.Say("The image of Deployment %s/%s was changed since `coredns enable`: it stays %s", Namespace, Name,
			now)
		before = now
	}
	ours := map[string]any{
		AnnotationImage:  c.deployment.Annotations[AnnotationImage],
		AnnotationBefore: c.deployment.Annotations[AnnotationBefore],
	}
	c.undo = append(c.undo, func(ctx context.Context) error { return c.patch(ctx, ours, now, nil) })
	if err := c.patch(ctx, map[string]any{AnnotationImage: nil, AnnotationBefore: nil}, before,
		map[string]any{AnnotationCorefile: nil}); err != nil {
		return err
	}
	if err := c.awaitRollout(ctx); err != nil {
		return err
	}
	c.did("Deployment %s/%s runs %s", Namespace, Name, before)
	return nil
}

// setCorefile writes the Corefile and the zones that Enable added to it, unless
// it is so already, and has the pods started anew with it.
func (c *change) setCorefile(ctx context.Context, text string, zones []string) error {
	before, zonesBefore := c.configMap.Data[Key], c.zones()
	if text == before {
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
	sum := sha256.Sum256([]byte(text))
	if err := c.patch(ctx, nil, "", map[string]any{AnnotationCorefile: hex.EncodeToString(sum[:8])}); err != nil {
		return err
	}
	if err := c.awaitRollout(ctx); err != nil {
		return err
	}
	c.did("ConfigMap %s/%s has the Corefile, and the pods have it", Namespace, Name)
	return nil
}

// writeCorefile fails where somebody changed the ConfigMap meanwhile.
func (c *change) writeCorefile(ctx context.Context, text string, zones []string) error {
	changed := c.configMap.DeepCopy()
	changed.Data[Key] = text
	delete(changed.Annotations, AnnotationZones)
	if len(zones) > 0 {
		metav1.SetMetaDataAnnotation(&changed.ObjectMeta, AnnotationZones, strings.Join(zones, ","))
	}
	updated, err := c.Cluster.Kube.CoreV1().ConfigMaps(Namespace).Update(ctx, changed,
		metav1.UpdateOptions{FieldManager: cluster.FieldManager, DryRun: c.dryRun()})
	if err != nil {
		return fmt.Errorf("ConfigMap %s/%s: %w", Namespace, Name, err)
	}
	if !c.DryRun {
		c.configMap = updated
	}
	return nil
}

// patch changes annotations of the Deployment and of its pods, and the image
// where it is not empty.
func (c *change) patch(ctx context.Context, annotations map[string]any, image string, ofPods map[string]any) error {
	template := map[string]any{}
	if ofPods != nil {
		template["metadata"] = map[string]any{"annotations": ofPods}
	}
	if image != "" {
		template["spec"] = map[string]any{"containers": []any{map[string]any{"name": c.container, "image": image}}}
	}
	change := map[string]any{"spec": map[string]any{"template": template}}
	if annotations != nil { // null would remove all that there are
		change["metadata"] = map[string]any{"annotations": annotations}
	}
	patch, err := json.Marshal(change)
	if err != nil {
		return err
	}
	_, err = c.Cluster.Kube.AppsV1().Deployments(Namespace).Patch(ctx, Name, types.StrategicMergePatchType, patch,
		metav1.PatchOptions{FieldManager: cluster.FieldManager, DryRun: c.dryRun()})
	if err != nil {
		return fmt.Errorf("deployment %s/%s: %w", Namespace, Name, err)
	}
	return nil
}

// awaitRollout waits until all pods are new and available.
func (c *change) awaitRollout(ctx context.Context) error {
	if c.DryRun {
		return nil
	}
	return c.Teller.Wait(ctx, func(ctx context.Context) (string, error) {
		deployment, err := c.Cluster.Kube.AppsV1().Deployments(Namespace).Get(ctx, Name, metav1.GetOptions{})
		if err != nil {
			return "", err
		}
		return Pending(deployment), nil
	})
}

// Pending says what a rollout waits for, nothing where it is over.
func Pending(deployment *appsv1.Deployment) string {
	want := int32(1)
	if deployment.Spec.Replicas != nil {
		want = *deployment.Spec.Replicas
	}
	status := deployment.Status
	switch {
	case status.ObservedGeneration < deployment.Generation:
		return "Kubernetes has to look at Deployment " + Name
	case status.UpdatedReplicas < want:
		return fmt.Sprintf("%d of %d new pods of Deployment %s have to be made", want-status.UpdatedReplicas, want,
			Name)
	case status.AvailableReplicas < want:
		return fmt.Sprintf("%d of %d pods of Deployment %s have to become available", want-status.AvailableReplicas,
			want, Name)
	case status.Replicas > status.UpdatedReplicas:
		return fmt.Sprintf("%d old pods of Deployment %s have to go", status.Replicas-status.UpdatedReplicas, Name)
	}
	return ""
}
