// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

// errStale reports that a cached object was stale.
var errStale = errors.New("it changed meanwhile")

// reportable is an API object that Events can be about.
type reportable interface {
	metav1.Object
	runtime.Object
}

// object is a pointer to an API object.
type object[T any] interface {
	*T
	reportable
}

// client is the part of a typed client that is used.
type client[P any] interface {
	Get(ctx context.Context, name string, options metav1.GetOptions) (P, error)
	Create(ctx context.Context, object P, options metav1.CreateOptions) (P, error)
	Delete(ctx context.Context, name string, options metav1.DeleteOptions) error
}

// write creates the desired object or updates the existing one (nil for none), and returns the stored object. update is the
// method Update or UpdateStatus of the client. desired has the resourceVersion of existing. If existing is stale, write returns the
// live object (nil for none) and errStale.
func write[T any, P object[T]](ctx context.Context, p *pass, client client[P],
	update func(context.Context, P, metav1.UpdateOptions) (P, error), existing, desired P, equal func(a, b P) bool,
) (P, error) {
	if existing != nil && equal(existing, desired) {
		return existing, nil
	}
	var written P
	var err error
	version := ""
	// Older CRDs lack some fields, each of which would cause a warning otherwise.
	if existing == nil {
		written, err = client.Create(ctx, desired, metav1.CreateOptions{FieldValidation: metav1.FieldValidationIgnore})
	} else {
		version = existing.GetResourceVersion()
		written, err = update(ctx, desired, metav1.UpdateOptions{FieldValidation: metav1.FieldValidationIgnore})
	}
	switch {
	case apierrors.IsAlreadyExists(err), apierrors.IsConflict(err), apierrors.IsNotFound(err) && existing != nil:
		return look(ctx, client, desired.GetName(), existing, err)
	case err != nil:
		return existing, err
	case written.GetResourceVersion() == version:
		return existing, nil // the API server or a webhook reverted the change
	}
	written.SetManagedFields(nil) // no cache holds them
	if equal(written, desired) {
		p.outcome.Written.Insert(VersionOf(written))
	} else {
		p.again = true // what the API server or a webhook changed may concern the merge
	}
	return written, nil
}

// look returns the live object (nil for none) and errStale after a write that was answered with err, if the object is not the
// one that was seen (nil for none). Otherwise err is the error: a webhook may answer with 409, for example.
func look[T any, P object[T]](ctx context.Context, client client[P], name string, seen P, err error) (P, error) {
	live, readErr := client.Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(readErr):
		live = nil
	case readErr != nil:
		return seen, readErr
	}
	if live == nil && seen == nil || live != nil && seen != nil &&
		live.GetUID() == seen.GetUID() && live.GetResourceVersion() == seen.GetResourceVersion() {
		return seen, err
	}
	return live, errStale
}

// remove deletes the object in the version that was seen, so that a former leader cannot delete what its successor
// wrote. It returns nil if the object is gone, and errStale if it changed, so that the caller decides again.
func remove[T any, P object[T]](ctx context.Context, client client[P], seen P) error {
	if seen.GetDeletionTimestamp() != nil {
		return nil // it waits for a finalizer
	}
	uid, version := seen.GetUID(), seen.GetResourceVersion()
	err := client.Delete(ctx, seen.GetName(),
		metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version}})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case apierrors.IsConflict(err):
		_, err = look(ctx, client, seen.GetName(), seen, err)
	}
	return err
}

// Credential returns a function that writes the Secret of a member with a renewed token. The API server rejects the write
// if the Secret has changed since it was read, or if no Role allows it. The command join creates a Role for each Secret.
func Credential(client kubernetes.Interface) func(context.Context, *corev1.Secret) error {
	return func(ctx context.Context, secret *corev1.Secret) error {
		_, err := client.CoreV1().Secrets(secret.Namespace).Update(ctx, secret, metav1.UpdateOptions{})
		return err
	}
}

// Probe creates an EndpointSlice of a cluster in a namespace as a dry run, and returns the API server's error. The slice
// has the labels of a published one, so that admission rules that select by label apply.
func Probe(ctx context.Context, client kubernetes.Interface, namespace, cluster string) error {
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			GenerateName: "clusterset-dns-probe-",
			Labels: map[string]string{
				export.LabelSourceCluster: cluster,
				export.LabelService:       "clusterset-dns-probe",
			},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
	}
	export.Mark(slice)
	_, err := client.DiscoveryV1().EndpointSlices(namespace).Create(ctx, slice, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		return fmt.Errorf("a dry run in namespace %s: %w", namespace, err)
	}
	return nil
}
