// SPDX-License-Identifier: Apache-2.0

// Package membership has the sources of members that --members-from names: ClusterProfiles and directories.
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
)

// Kinds of sources.
const (
	ClusterProfile = "clusterprofile"
	Directory      = "directory"
)

// Forms are the forms of a value of --members-from.
const Forms = "directory:<path> or clusterprofile:<namespace>[:<selector>[:<label>]]"

// A Spec is a value of --members-from.
type Spec struct {
	// Text is the whole value.
	Text string
	// Kind is the kind of the source. Argument is the namespace of the objects, or the path of the directory. Selector
	// selects objects by their labels. IDLabel is the label whose value is the id of the cluster, empty if the id is the
	// name of the object.
	Kind, Argument, Selector, IDLabel string
}

// Parse parses a value of --members-from, in one of the Forms. Without a selector, the objects with label
// member.ClusterLabel are selected.
func Parse(text string) (Spec, error) {
	kind, rest, _ := strings.Cut(text, ":")
	switch kind {
	case Directory:
		if !filepath.IsAbs(rest) || strings.ContainsAny(rest, " \n") {
			return Spec{}, fmt.Errorf("%q: use directory: with an absolute path without spaces", text)
		}
		return Spec{Text: text, Kind: kind, Argument: rest}, nil
	case ClusterProfile:
	default:
		return Spec{}, fmt.Errorf("%q: use %s", text, Forms)
	}
	namespace, rest, selects := strings.Cut(rest, ":")
	selector, label, labeled := strings.Cut(rest, ":")
	if !selects {
		selector = member.ClusterLabel
	}
	if reasons := validation.IsDNS1123Label(namespace); len(reasons) > 0 {
		return Spec{}, fmt.Errorf("%q: use %s", text, Forms)
	}
	if parsed, err := labels.Parse(selector); err != nil || parsed.Empty() || strings.Contains(text, " ") {
		return Spec{}, fmt.Errorf("%q: after the second colon, use a label selector without spaces, such as env=prod", text)
	}
	if reasons := validation.IsQualifiedName(label); labeled && len(reasons) > 0 {
		return Spec{}, fmt.Errorf("%q: after the third colon, use the key of the label whose value is the id of the cluster",
			text)
	}
	return Spec{Text: text, Kind: kind, Argument: namespace, Selector: selector, IDLabel: label}, nil
}

// New makes a source. namespace is that of the controller.
func New(spec Spec, namespace string, client kubernetes.Interface, objects dynamic.Interface) member.Source {
	if spec.Kind == Directory {
		return &directory{name: spec.Text, path: spec.Argument}
	}
	return &clusterProfiles{
		name: spec.Text, namespace: spec.Argument, selector: spec.Selector, idLabel: spec.IDLabel, client: client,
		dynamic: objects, heartbeats: namespace,
	}
}
