// SPDX-License-Identifier: Apache-2.0

// Package traffic reads what exports ask for the traffic between clusters.
//
// The package is pure. docs/design.md#traffic describes the settings.
package traffic

import (
	"fmt"
	"strings"

	"github.com/clusterset-dns/clusterset-dns/controller/selector"
)

// Values of the annotation export.AnnotationPrefer and of the flag --prefer, besides lists of tiers.
const (
	// PreferCluster is PreferLocal.
	PreferCluster = "cluster"
	// PreferLocal is a list of one tier, the local cluster.
	PreferLocal = "local"
	// PreferNone is a list without tiers.
	PreferNone = "none"
)

const (
	// MaxTiers bounds the tiers of a list.
	MaxTiers = 8
	// maxReason bounds the text of an error of another package, in bytes.
	maxReason = 256
)

// Tiers is an ordered list of tiers of clusters, best first. Clusters in no tier come last. The zero value treats all
// clusters alike. It is immutable.
type Tiers struct {
	text  string
	tiers []selector.Selector
}

// ParseTiers returns the tiers of a text: PreferCluster, PreferNone, or cluster selectors separated by ">", at most
// MaxTiers. Empty means PreferNone.
func ParseTiers(text string) (Tiers, error) {
	text = strings.TrimSpace(text)
	switch text {
	case "", PreferNone:
		return Tiers{}, nil
	case PreferCluster:
		text = PreferLocal
	}
	if len(text) > selector.MaxLength {
		return Tiers{}, fmt.Errorf("the list of tiers has %d bytes: use at most %d", len(text), selector.MaxLength)
	}
	parts := strings.Split(text, ">")
	if len(parts) > MaxTiers {
		return Tiers{}, fmt.Errorf("it has %d tiers: use at most %d", len(parts), MaxTiers)
	}
	parsed := Tiers{text: text}
	for _, part := range parts {
		tier, err := selector.Parse(strings.TrimSpace(part))
		if err != nil {
			return Tiers{}, fmt.Errorf("%q is no list of tiers: %s", selector.Shorten(text), reason(err))
		}
		parsed.tiers = append(parsed.tiers, tier)
	}
	return parsed, nil
}

// Any reports whether there is a tier.
func (t Tiers) Any() bool { return len(t.tiers) > 0 }

// LocalFirst reports whether the first tier is the local cluster.
func (t Tiers) LocalFirst() bool { return t.Any() && t.tiers[0].String() == PreferLocal }

// OnlyLocal reports whether the local cluster is the only tier.
func (t Tiers) OnlyLocal() bool { return t.LocalFirst() && len(t.tiers) == 1 }

// Of returns the first tier that selects the cluster as seen from the local one, from 0, or else the number of tiers.
func (t Tiers) Of(cluster, local selector.Cluster) int {
	for i, tier := range t.tiers {
		if tier.Selects(cluster, local) {
			return i
		}
	}
	return len(t.tiers)
}

// String returns the list, PreferNone without tiers.
func (t Tiers) String() string {
	if !t.Any() {
		return PreferNone
	}
	return t.text
}

// reason returns the text of an error of another package, which may quote another cluster's text.
func reason(err error) string {
	if text := err.Error(); len(text) > maxReason {
		return strings.ToValidUTF8(text[:maxReason-3], "") + "..."
	}
	return err.Error()
}
