// SPDX-License-Identifier: Apache-2.0

// Package membership makes the sources of members that --members-from names.
package membership

import (
	"fmt"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/controller/membership/argocd"
	"github.com/clusterset-dns/clusterset-dns/controller/membership/clusterapi"
	"github.com/clusterset-dns/clusterset-dns/controller/membership/clusterprofile"
	"github.com/clusterset-dns/clusterset-dns/controller/membership/directory"
	"github.com/clusterset-dns/clusterset-dns/controller/membership/ocm"
)

// Kinds of sources.
const (
	ArgoCD         = "argocd"
	ClusterAPI     = "cluster-api"
	ClusterProfile = "clusterprofile"
	Directory      = "directory"
	OCM            = "ocm"
)

// Forms are the forms of a value of --members-from.
const Forms = "directory:<path>, clusterprofile:<namespace>, cluster-api:<namespace>, argocd:<namespace>, or " +
	"ocm[:<ManagedServiceAccount>]"

// A Spec is a value of --members-from.
type Spec struct {
	// Text is the whole value.
	Text string
	// Kind is the kind of the source. Argument is the namespace of the objects, the path of the directory, or the name of
	// the ManagedServiceAccounts. Selector selects objects by their labels.
	Kind, Argument, Selector string
}

// Parse parses a value of --members-from: kind, argument and selector, separated by colons. Without a selector, the objects
// with label member.ClusterLabel are selected.
func Parse(text string) (Spec, error) {
	kind, rest, _ := strings.Cut(text, ":")
	argument, selector, selects := strings.Cut(rest, ":")
	spec := Spec{Text: text, Kind: kind, Argument: argument, Selector: selector}
	if kind == Directory {
		spec.Argument, spec.Selector = rest, ""
	}
	if kind == OCM && argument == "" {
		spec.Argument = ocm.DefaultAccount
	}
	switch kind {
	case Directory:
		if !filepath.IsAbs(spec.Argument) || strings.ContainsAny(spec.Argument, " \n") {
			return Spec{}, fmt.Errorf("%q: use directory: with an absolute path without spaces", text)
		}
		return spec, nil
	case ClusterAPI, ClusterProfile, ArgoCD, OCM:
		if reasons := validation.IsDNS1123Label(spec.Argument); len(reasons) > 0 {
			return Spec{}, fmt.Errorf("%q: use %s", text, Forms)
		}
	default:
		return Spec{}, fmt.Errorf("%q: use %s", text, Forms)
	}
	if !selects {
		spec.Selector = member.ClusterLabel
	}
	if selector, err := labels.Parse(spec.Selector); err != nil || selector.Empty() || strings.Contains(text, " ") {
		return Spec{}, fmt.Errorf("%q: after the second colon, use a label selector without spaces, such as env=prod", text)
	}
	return spec, nil
}

// New makes a source. namespace is that of the controller.
func New(spec Spec, namespace string, client kubernetes.Interface, objects dynamic.Interface) member.Source {
	switch spec.Kind {
	case ArgoCD:
		return &argocd.Source{
			Name: spec.Text, Namespace: spec.Argument, Selector: spec.Selector, Client: client, Heartbeats: namespace,
		}
	case ClusterAPI:
		return &clusterapi.Source{
			Name: spec.Text, Namespace: spec.Argument, Selector: spec.Selector, Client: client, Heartbeats: namespace,
		}
	case ClusterProfile:
		return &clusterprofile.Source{
			Name: spec.Text, Namespace: spec.Argument, Selector: spec.Selector, Client: client, Dynamic: objects,
			Heartbeats: namespace,
		}
	case OCM:
		return &ocm.Source{
			Name: spec.Text, Account: spec.Argument, Selector: spec.Selector, Client: client, Dynamic: objects,
			Heartbeats: namespace,
		}
	default:
		return &directory.Source{Name: spec.Text, Path: spec.Argument}
	}
}
