// SPDX-License-Identifier: Apache-2.0

// Package coredns makes the CoreDNS of a cluster, as kubeadm installs it, answer for the zone of the set, in one of three
// modes, and reverts that.
package coredns

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/kubernetes"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/progress"
	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

// Location of CoreDNS.
const (
	Namespace = metav1.NamespaceSystem
	// Name is that of the Deployment, the ConfigMap and the container.
	Name = "coredns"
	// Key is that of the Corefile in the ConfigMap.
	Key = "Corefile"
	// Rights is the name of the ClusterRole and the binding that Enable creates.
	Rights = "kubectl-clusterset-coredns"
)

// Annotations that record what Enable did.
const (
	// AnnotationBefore on the Deployment is the previous image, AnnotationImage the one
	// that replaced it.
	AnnotationBefore = export.Domain + "/coredns-image-before"
	AnnotationImage  = export.Domain + "/coredns-image"
	// AnnotationCorefile on the pods is a digest of their Corefile.
	AnnotationCorefile = export.Domain + "/corefile"
	// AnnotationZones on the ConfigMap are the zones for which Enable added the
	// plugin to the Corefile, separated by commas.
	AnnotationZones = export.Domain + "/coredns-zones"
)

// Options are those of Enable and Disable.
type Options struct {
	Cluster *cluster.Cluster
	// Mode is one of ByMulticluster, ByKubernetes and ByForward, and Image the image for the first. Enable uses both.
	Mode, Image string
	Zone        string
	DryRun      bool
	// NodeLocal also changes NodeLocal DNSCache.
	NodeLocal bool
	// Force changes a CoreDNS that has another owner.
	Force  bool
	Teller progress.Teller
}

// A change is an edit in progress and its rollback.
type change struct {
	Options
	deployment *appsv1.Deployment
	container  string
	configMap  *corev1.ConfigMap
	corefile   *Corefile
	// undo are the steps of the rollback, in the order of the changes.
	undo []func(context.Context) error
}

// Enable makes CoreDNS answer for the zone. If a step fails, Enable reverts those before it.
func Enable(ctx context.Context, o Options) error {
	c, err := o.look(ctx)
	if err != nil {
		return err
	}
	if err := c.refuse(); err != nil {
		return err
	}
	// Without an id, answers do not prefer near endpoints; check says so if an import asks for it.
	identity, _ := o.Cluster.Identify(ctx)
	if identity.Set != "" {
		return fmt.Errorf("the controller in namespace %s is of %s, but enable serves the default cluster set only: add a "+
			"server block with the option `clusterset %s` to ConfigMap %s/%s yourself, see docs/operate/several-sets.md",
			o.Cluster.Namespace, identity.Set, string(identity.Set), Namespace, Name)
	}
	version, err := o.Cluster.MCSVersion(ctx)
	if err != nil {
		return err
	}
	if version == "" {
		return fmt.Errorf("the MCS API is not served: apply its CRDs with `kubectl clusterset manifest crds | kubectl "+
			"--context %s apply -f -`", o.Cluster.Context)
	}
	way := Way{Mode: o.Mode}
	switch o.Mode {
	case ByKubernetes:
		// Its client knows this version alone, and CoreDNS does not become ready without it.
		if served, err := o.Cluster.ServesMCS("v1alpha1"); err != nil || !served {
			return errors.Join(errors.New("stock CoreDNS reads the MCS API in version v1alpha1, which is not served: use --forward"), err)
		}
	case ByForward:
		if way.Servers, err = o.servers(ctx); err != nil {
			return err
		}
	case ByMulticluster:
		way.ClusterID = identity.ID
	}
	text, err := c.corefile.Enable(o.Zone, way)
	if err != nil {
		return err
	}
	return c.orUndo(ctx, func() error {
		if o.Mode != ByForward {
			if err := c.grant(ctx); err != nil {
				return err
			}
		}
		// The image is first, so that the zone is answered as soon as the Corefile has it.
		if o.Mode == ByMulticluster {
			if err := c.setImage(ctx, o.Image); err != nil {
				return err
			}
		}
		zones := c.zones()
		if text != c.corefile.String() && !slices.Contains(zones, name(o.Zone)) {
			zones = append(zones, name(o.Zone))
		}
		if err := c.setCorefile(ctx, text, zones); err != nil {
			return err
		}
		if o.NodeLocal {
			return c.enableNodeLocal(ctx)
		}
		return nil
	})
}

// refuse returns why CoreDNS is not to be changed, or not in this mode.
func (c *change) refuse() error {
	if owner := OwnerOf(c.deployment, c.configMap); owner != nil && !c.Force {
		return fmt.Errorf("%s manages the CoreDNS of this cluster and would revert the change: %s, or use --force",
			owner.Name, owner.Instead)
	}
	if c.Mode != ByKubernetes {
		return nil
	}
	if image := Container(c.deployment).Image; !HasOption(image) {
		return fmt.Errorf("image %s of Deployment %s/%s is older than CoreDNS %s, which has the option %s: use --forward, or --image",
			image, Namespace, Name, stockVersion, plugin)
	}
	return nil
}

// HasOption reports whether an image of stock CoreDNS has the option multicluster of the plugin kubernetes, by its tag.
// A tag that is no version is taken for a new one.
func HasOption(image string) bool {
	image, _, _ = strings.Cut(image, "@")
	found, err := version.ParseGeneric(image[strings.LastIndex(image, ":")+1:])
	return err != nil || !found.LessThan(version.MustParseGeneric(stockVersion))
}

// stockVersion of CoreDNS is the first with the option multicluster of the plugin kubernetes.
const stockVersion = "1.12.2"

// ChartName is that of the objects of the chart's CoreDNS.
const ChartName = "clusterset-coredns"

// ChartNamespace is the namespace of the chart's CoreDNS, empty if there is none. Its ClusterRoleBinding, which only
// administrators can write, names it.
func ChartNamespace(ctx context.Context, kube kubernetes.Interface) (string, error) {
	binding, err := kube.RbacV1().ClusterRoleBindings().Get(ctx, ChartName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	for _, subject := range binding.Subjects {
		if subject.Name == ChartName {
			return subject.Namespace, nil
		}
	}
	return "", nil
}

// servers are the cluster IPs of the chart's CoreDNS.
func (o Options) servers(ctx context.Context) ([]string, error) {
	missing := errors.New("no CoreDNS of clusterset-dns to forward to: install the chart with --set coredns.enabled=true")
	namespace, err := ChartNamespace(ctx, o.Cluster.Kube)
	if err != nil {
		return nil, fmt.Errorf("looking for the CoreDNS of the chart: %w", err)
	}
	if namespace == "" {
		return nil, missing
	}
	service, err := o.Cluster.Kube.CoreV1().Services(namespace).Get(ctx, ChartName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, missing
	}
	if err != nil {
		return nil, fmt.Errorf("looking for the CoreDNS of the chart: %w", err)
	}
	return service.Spec.ClusterIPs, nil
}

// Disable reverts what Enable changed for a zone. If the Corefile does not have the plugin multicluster any more, Disable
// also restores the image that Enable found, and removes the rights and the revisions of the Deployment that both made.
// If a step fails, Disable reverts those before it.
func Disable(ctx context.Context, o Options) error {
	c, err := o.look(ctx)
	if err != nil {
		return err
	}
	zones, text := c.zones(), c.corefile.String()
	switch at := slices.Index(zones, name(o.Zone)); {
	case at >= 0:
		var removed bool
		if text, removed = c.corefile.Disable(o.Zone); !removed {
			o.Teller.Say("ConfigMap %s/%s was edited since `coredns enable`: remove %s from its Corefile by hand",
				Namespace, Name, name(o.Zone))
		}
		zones = slices.DeleteFunc(zones, func(zone string) bool { return zone == name(o.Zone) })
	case c.corefile.By(o.Zone) != "":
		o.Teller.Say("ConfigMap %s/%s serves %s with the plugin %s, which `coredns enable` did not add: it is kept", Namespace, Name,
			name(o.Zone), c.corefile.By(o.Zone))
	}
	after, err := ParseCorefile(text)
	if err != nil {
		return err
	}
	err = c.orUndo(ctx, func() error {
		if err := c.setCorefile(ctx, text, zones); err != nil {
			return err
		}
		if err := c.disableNodeLocal(ctx); err != nil || after.Uses() {
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
		o.Teller.Say("The Corefile still uses the plugin %s, so the image and the permissions of CoreDNS are kept. To "+
			"remove them, remove the plugin from ConfigMap %s/%s and run this command again", plugin, Namespace, Name)
		return nil
	}
	return c.forget(ctx)
}

// look reads the current state.
func (o Options) look(ctx context.Context) (*change, error) {
	c := &change{Options: o}
	var err error
	if c.deployment, err = o.Cluster.Kube.AppsV1().Deployments(Namespace).Get(ctx, Name,
		metav1.GetOptions{}); err != nil {
		return nil, o.elsewhere(ctx, err)
	}
	if c.configMap, err = o.Cluster.Kube.CoreV1().ConfigMaps(Namespace).Get(ctx, Name,
		metav1.GetOptions{}); err != nil {
		return nil, o.elsewhere(ctx, err)
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

// undoTimeout bounds the rollback.
const undoTimeout = time.Minute

// orUndo rolls everything back if do fails, even if ctx is canceled.
func (c *change) orUndo(ctx context.Context, do func() error) error {
	err := do()
	if err == nil || len(c.undo) == 0 {
		return err
	}
	c.Teller.Say("Failed; rolling back")
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTimeout)
	defer cancel()
	failed := []error{err}
	for _, undo := range slices.Backward(c.undo) {
		if undoErr := undo(ctx); undoErr != nil {
			failed = append(failed, fmt.Errorf("roll back: %w", undoErr))
		}
	}
	if len(failed) == 1 {
		return fmt.Errorf("%w (all changes were rolled back)", err)
	}
	return errors.Join(failed...)
}
