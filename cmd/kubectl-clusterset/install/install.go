// SPDX-License-Identifier: Apache-2.0

// Package install puts the controller and all that it needs into a cluster
// without Helm, and takes it out again.
package install

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/ptr"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/join"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/manifest"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/progress"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
)

// Options say what to install where.
type Options struct {
	Cluster *cluster.Cluster
	// ID is that of the cluster; empty means that of the Deployment, else of the
	// ClusterProperty.
	ID string
	// Image is that of the controller; empty means the repository of the
	// Deployment, else of the manifest, with the tag of the manifest.
	Image  string
	DryRun bool
	Teller progress.Teller
}

// client is that of the resource of an object.
func (o Options) client(object *unstructured.Unstructured) dynamic.ResourceInterface {
	resource, _ := meta.UnsafeGuessKindToResource(object.GroupVersionKind())
	if object.GetNamespace() == "" {
		return o.Cluster.Dynamic.Resource(resource)
	}
	return o.Cluster.Dynamic.Resource(resource).Namespace(object.GetNamespace())
}

// Install applies the manifest, and waits until the controller is available. If
// the controller is installed, its flags stay. It is an error if Helm owns one
// of the objects, or if the controller is installed in another namespace, and
// nothing is changed then. A Namespace and CRDs that others installed stay.
func Install(ctx context.Context, o Options) error {
	objects, err := manifest.Objects(manifest.All, o.Cluster.Namespace)
	if err != nil {
		return err
	}
	existing := map[*unstructured.Unstructured]*unstructured.Unstructured{}
	for _, object := range objects {
		found, err := o.client(object).Get(ctx, object.GetName(), metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("%s: %w", nameOf(object), err)
		}
		existing[object] = found
		if err := o.ofHelm(found, "helm upgrade"); err != nil && !isCRD(found) {
			return err
		}
	}
	if err := o.elsewhere(ctx); err != nil {
		return err
	}
	var id string
	for _, object := range objects {
		if object.GetKind() == "Deployment" {
			if id, err = o.configure(ctx, object, existing[object]); err != nil {
				return err
			}
		}
	}
	unchecked := 0
	for _, object := range objects {
		found := existing[object]
		if found != nil && (isCRD(found) || isNamespace(found)) && o.foreign(found) {
			continue
		}
		_, err := o.client(object).Apply(ctx, object.GetName(), object, metav1.ApplyOptions{
			FieldManager: cluster.FieldManager, Force: true, DryRun: cluster.DryRun(o.DryRun),
		})
		if o.DryRun && apierrors.IsNotFound(err) && object.GetNamespace() != "" {
			unchecked++
			continue
		}
		if err != nil {
			return fmt.Errorf("%s: %w", nameOf(object), err)
		}
	}
	if unchecked > 0 {
		o.Teller.Say("%s: namespace %s does not exist yet, so that %d objects in it were not checked",
			o.Cluster.Context, o.Cluster.Namespace, unchecked)
	}
	if !o.DryRun {
		if err := o.await(ctx); err != nil {
			return err
		}
	}
	o.Teller.Wrote(o.DryRun, "%s: clusterset-dns is installed in namespace %s as cluster %s", o.Cluster.Context,
		o.Cluster.Namespace, id)
	return nil
}

// ofHelm returns an error if Helm owns an object. verb is what to use then.
func (o Options) ofHelm(object *unstructured.Unstructured, verb string) error {
	release := object.GetAnnotations()["meta.helm.sh/release-name"]
	if release == "" && object.GetLabels()["app.kubernetes.io/managed-by"] != "Helm" {
		return nil
	}
	return fmt.Errorf("nothing was changed: Helm owns %s (release %s/%s): use %s", nameOf(object),
		object.GetAnnotations()["meta.helm.sh/release-namespace"], release, verb)
}

// elsewhere returns an error if a controller in another namespace has the rights.
func (o Options) elsewhere(ctx context.Context) error {
	binding, err := o.Cluster.Kube.RbacV1().ClusterRoleBindings().Get(ctx, join.ControllerName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	var other string
	for _, subject := range binding.Subjects {
		switch {
		case subject.Kind != rbacv1.ServiceAccountKind:
		case subject.Namespace == o.Cluster.Namespace:
			return nil
		default:
			other = subject.Namespace
		}
	}
	if other == "" {
		return nil
	}
	return fmt.Errorf("nothing was changed: by ClusterRoleBinding %s, the controller is in namespace %s, not %s: "+
		"use --system-namespace %[2]s", binding.Name, other, o.Cluster.Namespace)
}

func isCRD(object *unstructured.Unstructured) bool {
	return object.GetKind() == "CustomResourceDefinition"
}

func isNamespace(object *unstructured.Unstructured) bool {
	return object.GetKind() == "Namespace"
}

// foreign tells whether others made an object, and says that it stays then.
func (o Options) foreign(object *unstructured.Unstructured) bool {
	if slices.ContainsFunc(object.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager == cluster.FieldManager
	}) {
		return false
	}
	o.Teller.Say("%s: %s was not installed by this command: it stays", o.Cluster.Context, nameOf(object))
	return true
}

func nameOf(object *unstructured.Unstructured) string {
	if namespace := object.GetNamespace(); namespace != "" {
		return object.GetKind() + " " + namespace + "/" + object.GetName()
	}
	return object.GetKind() + " " + object.GetName()
}

// configure sets the flags and the image of the controller's Deployment, and
// returns the id of the cluster.
func (o Options) configure(ctx context.Context, deployment, existing *unstructured.Unstructured) (string, error) {
	containers, _, err := unstructured.NestedSlice(deployment.Object, "spec", "template", "spec", "containers")
	if err != nil || len(containers) == 0 {
		return "", errors.New("the manifest has no container of the controller")
	}
	container, _ := containers[0].(map[string]any)
	args, _, _ := unstructured.NestedStringSlice(container, "args")
	image, _, _ := unstructured.NestedString(container, "image")
	var before []string
	if existing != nil {
		if had, _, _ := unstructured.NestedSlice(existing.Object, "spec", "template", "spec", "containers"); len(had) > 0 {
			of, _ := had[0].(map[string]any)
			before, _, _ = unstructured.NestedStringSlice(of, "args")
			running, _, _ := unstructured.NestedString(of, "image")
			if image, err = upgraded(running, image, o.Image); err != nil {
				return "", err
			}
		}
	} else if image, err = upgraded("", image, o.Image); err != nil {
		return "", err
	}
	id := o.ID
	if id == "" {
		id = valueOf(before, "--cluster-id")
	}
	own := []string{"--namespace=" + o.Cluster.Namespace}
	if id != "" {
		own = append(own, "--cluster-id="+id)
	} else if id, err = o.Cluster.Property(ctx); err != nil || id == "" {
		return "", errors.Join(errors.New("the id of the cluster is unknown: set --cluster-id, or create the "+
			"ClusterProperty cluster.clusterset.k8s.io"), err)
	}
	if err := member.ValidateID(id); err != nil {
		return "", err
	}
	container["args"] = toAny(merged(own, before, args))
	container["image"] = image
	return id, unstructured.SetNestedSlice(deployment.Object, containers, "spec", "template", "spec", "containers")
}

// upgraded is the image to run: the wanted one, else the one of the manifest from
// the repository of the running one.
func upgraded(running, shipped, wanted string) (string, error) {
	repository, tag := cut(shipped)
	switch from, _ := cut(running); {
	case wanted != "":
		return wanted, nil
	case strings.Contains(running, "@"):
		return "", fmt.Errorf("the controller runs %s, which is a digest: set --image to the one of this version", running)
	case running != "":
		repository = from
	}
	if host, _, found := strings.Cut(repository, "/"); !found || !strings.ContainsAny(host, ".:") && host != "localhost" {
		return "", errors.New("this build has no registry with an image of the controller: set --image")
	}
	return repository + tag, nil
}

// cut splits an image into its repository and its tag or digest.
func cut(image string) (repository, tag string) {
	if at := strings.Index(image, "@"); at >= 0 {
		return image[:at], image[at:]
	}
	if at := strings.LastIndex(image, ":"); at > strings.LastIndex(image, "/") {
		return image[:at], image[at:]
	}
	return image, ""
}

// merged are the flags of all lists. Those of earlier lists hide flags of the
// same name in later ones; a flag may be there several times in one list.
func merged(lists ...[]string) []string {
	var all []string
	taken := map[string]bool{}
	for _, list := range lists {
		names, name := []string{}, ""
		for _, arg := range list {
			if strings.HasPrefix(arg, "-") { // else it is the value of the flag before
				name, _, _ = strings.Cut(arg, "=")
				names = append(names, name)
			}
			if !taken[name] {
				all = append(all, arg)
			}
		}
		for _, name := range names {
			taken[name] = true
		}
	}
	return all
}

func valueOf(args []string, flag string) string {
	for i, arg := range args {
		if value, found := strings.CutPrefix(arg, flag+"="); found {
			return value
		}
		if arg == flag && i+1 < len(args) {
			return args[i+1]
		}
	}
	return ""
}

func toAny(texts []string) []any {
	out := make([]any, len(texts))
	for i, text := range texts {
		out[i] = text
	}
	return out
}

// await waits until the controller is available.
func (o Options) await(ctx context.Context) error {
	return o.Teller.Wait(ctx, func(ctx context.Context) (string, error) {
		deployment, err := o.Cluster.Kube.AppsV1().Deployments(o.Cluster.Namespace).Get(ctx, join.ControllerName,
			metav1.GetOptions{})
		if err != nil {
			return "", err
		}
		return pending(deployment), nil
	})
}

func pending(deployment *appsv1.Deployment) string {
	status, want := deployment.Status, ptr.Deref(deployment.Spec.Replicas, 1)
	if status.ObservedGeneration >= deployment.Generation && status.UpdatedReplicas >= want &&
		status.AvailableReplicas >= want && status.Replicas <= status.UpdatedReplicas {
		return ""
	}
	return fmt.Sprintf("waiting for Deployment %s/%s: %d of %d new pods are available", deployment.Namespace,
		deployment.Name, min(status.UpdatedReplicas, status.AvailableReplicas), want)
}
