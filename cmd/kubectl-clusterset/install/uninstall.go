// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/coredns"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/join"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/manifest"
	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
)

// selector finds what was installed.
const selector = "app.kubernetes.io/name=clusterset-dns"

// Uninstall deletes what Install applied, and what the controller made, and
// waits until all of it is gone. ServiceExports stay; so do the CRDs, unless
// they are to go, which deletes every ServiceExport. A Namespace and CRDs that
// others installed stay in any case. It is an error if the cluster has members,
// if the controller is installed in another namespace, if that of a named cluster set
// is installed, if Helm owns one of the objects, or if CoreDNS needs CRDs that are to go, and nothing is changed then.
func Uninstall(ctx context.Context, o Options, crds bool) error {
	objects, err := o.installed(ctx)
	if err != nil {
		return err
	}
	for _, object := range objects {
		if set, named := strings.CutPrefix(object.GetName(), join.ControllerName+"-"); named &&
			object.GetKind() == "ClusterRoleBinding" {
			return fmt.Errorf("nothing was changed: the controller of %s is installed, too: uninstall it first, with Helm",
				export.Set(set))
		}
	}
	for _, object := range objects {
		if err := o.ofHelm(object, "helm uninstall"); err != nil {
			return err
		}
	}
	if err := o.elsewhere(ctx); err != nil {
		return err
	}
	var definitions []*unstructured.Unstructured
	if crds {
		if definitions, err = o.definitions(ctx); err != nil {
			return err
		}
		if err := o.unread(ctx); err != nil {
			return err
		}
	}
	members, err := o.Cluster.Credentials(ctx, "")
	if err != nil {
		return err
	}
	if len(members) > 0 {
		var ids []string
		for i := range members {
			ids = append(ids, members[i].Labels[member.ClusterLabel])
		}
		return fmt.Errorf("nothing was changed: the cluster has members (%s): take it out of the set first with "+
			"`kubectl clusterset leave %s`", strings.Join(ids, ", "), o.Cluster.Context)
	}
	version, err := o.Cluster.MCSVersion(ctx)
	if err != nil {
		return err
	}
	if version != "" {
		exports, err := o.Cluster.ServiceExports(ctx, "")
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
		if len(exports) > 0 && slices.ContainsFunc(definitions, func(definition *unstructured.Unstructured) bool {
			return strings.HasPrefix(definition.GetName(), v1beta1.ServiceExportPluralName+".")
		}) {
			o.Teller.Say("%s: %d ServiceExports are deleted with the CRDs", o.Cluster.Context, len(exports))
		} else if len(exports) > 0 {
			o.Teller.Say("%s: %d ServiceExports stay, and have no effect", o.Cluster.Context, len(exports))
		}
	}
	// The controller first: it would make again what is deleted.
	at := slices.IndexFunc(objects, func(object *unstructured.Unstructured) bool {
		return object.GetKind() == "Deployment" && object.GetName() == join.ControllerName
	})
	if at >= 0 {
		if err := o.delete(ctx, objects[at]); err != nil {
			return err
		}
	}
	made, err := o.made(ctx, version)
	if err != nil {
		return err
	}
	rest := slices.Concat(made, objects, definitions)
	if err := o.delete(ctx, rest...); err != nil {
		return err
	}
	o.Teller.Wrote(o.DryRun, "%s: deleted %d objects of clusterset-dns", o.Cluster.Context, len(rest))
	return nil
}

// unread returns an error if the Corefile of the cluster's CoreDNS has a plugin
// that reads ServiceImports. Without the CRDs, CoreDNS would not become ready at
// its next start, also not for other names.
func (o Options) unread(ctx context.Context) error {
	config, err := o.Cluster.Kube.CoreV1().ConfigMaps(coredns.Namespace).Get(ctx, coredns.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	text := config.Data[coredns.Key]
	// The option of the stock plugin has the same name.
	corefile, err := coredns.ParseCorefile(text)
	if strings.Contains(text, coredns.ByMulticluster) || err == nil && corefile.Uses() {
		return fmt.Errorf("nothing was changed: the Corefile in ConfigMap %s/%s has multicluster, which needs the CRDs: "+
			"remove it first with `kubectl clusterset coredns disable`", coredns.Namespace, coredns.Name)
	}
	return nil
}

// installed are the objects of the kinds of the manifest that have its labels
// and are in the namespace of the controller or in none. The Namespace comes last,
// if this command made it.
func (o Options) installed(ctx context.Context) ([]*unstructured.Unstructured, error) {
	templates, err := manifest.Objects(manifest.All, o.Cluster.Namespace)
	if err != nil {
		return nil, err
	}
	var found []*unstructured.Unstructured
	asked := map[string]bool{}
	for _, template := range slices.Backward(templates) { // in which the Namespace is the first
		if isCRD(template) || asked[template.GetKind()] {
			continue
		}
		asked[template.GetKind()] = true
		list, err := o.client(template).List(ctx, metav1.ListOptions{LabelSelector: selector})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", template.GetKind(), err)
		}
		for i := range list.Items {
			object := &list.Items[i]
			if isNamespace(object) && (object.GetName() != o.Cluster.Namespace || o.foreign(object)) {
				continue
			}
			found = append(found, object)
		}
	}
	return found, nil
}

// made is what the controller made: imports, derived Services, EndpointSlices,
// and Leases.
func (o Options) made(ctx context.Context, version string) ([]*unstructured.Unstructured, error) {
	var found []*unstructured.Unstructured
	for _, each := range []struct {
		resource  schema.GroupVersionResource
		namespace string
		label     string
	}{
		{
			schema.GroupVersionResource{Group: v1beta1.GroupName, Version: version, Resource: v1beta1.ServiceImportPluralName},
			"", export.LabelManagedBy,
		},
		{schema.GroupVersionResource{Version: "v1", Resource: "services"}, "", export.LabelManagedBy},
		{
			schema.GroupVersionResource{Group: "discovery.k8s.io", Version: "v1", Resource: "endpointslices"},
			"", export.LabelSliceManagedBy,
		},
		{
			schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"},
			o.Cluster.Namespace, "",
		},
	} {
		if each.resource.Version == "" {
			continue // the MCS API is not served
		}
		options := metav1.ListOptions{}
		if each.label != "" {
			options.LabelSelector = each.label + "=" + export.Manager
		}
		list, err := o.Cluster.Dynamic.Resource(each.resource).Namespace(each.namespace).List(ctx, options)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", each.resource.Resource, err)
		}
		for i := range list.Items {
			object := &list.Items[i]
			if each.label == "" && !strings.HasPrefix(object.GetName(), "clusterset-") {
				continue // a Lease of another program
			}
			found = append(found, object)
		}
	}
	return found, nil
}

// definitions are the CRDs of the MCS API that this command installed.
func (o Options) definitions(ctx context.Context) ([]*unstructured.Unstructured, error) {
	templates, err := manifest.Objects(manifest.CRDs, o.Cluster.Namespace)
	if err != nil {
		return nil, err
	}
	var found []*unstructured.Unstructured
	for _, template := range templates {
		object, err := o.client(template).Get(ctx, template.GetName(), metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if err := o.ofHelm(object, "helm uninstall"); err != nil {
			return nil, err
		}
		if !o.foreign(object) {
			found = append(found, object)
		}
	}
	return found, nil
}

// delete deletes objects, with what they own, and waits until they are gone.
func (o Options) delete(ctx context.Context, objects ...*unstructured.Unstructured) error {
	foreground := metav1.DeletePropagationForeground
	for _, object := range objects {
		err := o.client(object).Delete(ctx, object.GetName(), metav1.DeleteOptions{
			PropagationPolicy: &foreground, DryRun: cluster.DryRun(o.DryRun),
		})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("%s: %w", nameOf(object), err)
		}
	}
	if o.DryRun {
		return nil
	}
	return o.Teller.Wait(ctx, func(ctx context.Context) (string, error) {
		for _, object := range objects {
			_, err := o.client(object).Get(ctx, object.GetName(), metav1.GetOptions{})
			if err == nil {
				return "waiting for the end of " + nameOf(object), nil
			}
			if !apierrors.IsNotFound(err) {
				return "", err
			}
		}
		return "", nil
	})
}
