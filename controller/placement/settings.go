// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"fmt"
	"strings"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/scope"
)

// Values of the annotation export.AnnotationPrefer and of the flag --prefer, besides lists of tiers.
const (
	// PreferCluster means the same as PreferLocal.
	PreferCluster = "cluster"
	// PreferLocal is a list of one tier, the local cluster.
	PreferLocal = "local"
	// PreferNone is a list without tiers.
	PreferNone = "none"
)

// maxTiers bounds the tiers of a list.
const maxTiers = 8

// Tiers is an ordered list of tiers of clusters, best first. Clusters in no tier come last. The zero value treats all
// clusters alike. It is immutable.
type Tiers struct {
	text  string
	tiers []scope.Selector
}

// ParseTiers returns the tiers of a text: PreferCluster, PreferNone, or cluster selectors separated by ">", at most
// maxTiers. Empty means PreferNone.
func ParseTiers(text string) (Tiers, error) {
	text = strings.TrimSpace(text)
	switch text {
	case "", PreferNone:
		return Tiers{}, nil
	case PreferCluster:
		text = PreferLocal
	}
	if len(text) > scope.MaxSelector {
		return Tiers{}, fmt.Errorf("the list of tiers has %d bytes: use at most %d", len(text), scope.MaxSelector)
	}
	parts := strings.Split(text, ">")
	if len(parts) > maxTiers {
		return Tiers{}, fmt.Errorf("it has %d tiers: use at most %d", len(parts), maxTiers)
	}
	parsed := Tiers{text: text}
	for _, part := range parts {
		tier, err := scope.ParseSelector(strings.TrimSpace(part))
		if err != nil {
			return Tiers{}, refuse(text, "no list of tiers", err)
		}
		parsed.tiers = append(parsed.tiers, tier)
	}
	return parsed, nil
}

// Any reports whether there is a tier.
func (t Tiers) Any() bool { return len(t.tiers) > 0 }

// localFirst reports whether the first tier is the local cluster.
func (t Tiers) localFirst() bool { return t.Any() && t.tiers[0].String() == PreferLocal }

// Of returns the first tier that selects the cluster as seen from the local one, from 0, or else the number of tiers.
func (t Tiers) Of(cluster, local scope.Cluster) int {
	for i, tier := range t.tiers {
		if tier.Selects(cluster, local) {
			return i
		}
	}
	return len(t.tiers)
}

// parseAllowed returns the selector of the allowed clusters, nil if all are. With an error it returns a selector of no cluster.
func parseAllowed(annotations map[string]string) (*scope.Selector, error) {
	text, restricted := annotations[export.AnnotationAllowedClusters]
	if !restricted {
		return nil, nil
	}
	selector, err := scope.ParseSelector(text)
	if err != nil {
		return &scope.Selector{}, refuse(text, "no cluster selector, so that only endpoints of this cluster are used", err)
	}
	return &selector, nil
}

// refuse returns the error for a text, whose error may quote another cluster's text.
func refuse(text, what string, err error) error {
	return fmt.Errorf("%.63q is %s: %s", text, what, export.Cut(err.Error(), 256))
}
