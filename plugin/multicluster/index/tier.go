// SPDX-License-Identifier: Apache-2.0

package index

import (
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
)

// AnnotationPrefer on a ServiceImport says which endpoints its clients prefer: "cluster" the own cluster's, "none" no
// cluster's. Exports set it.
const AnnotationPrefer = "clusterset-dns.github.io/prefer"

// preferenceOf is what an import says itself. Who prefers the own cluster to all others prefers it to the own zone of
// others; values that are not known say nothing.
func preferenceOf(object *mcsv1beta1.ServiceImport) Preference {
	prefer := object.Annotations[AnnotationPrefer]
	if prefer == "cluster" {
		return PreferCluster
	}
	switch deref(object.Spec.TrafficDistribution) {
	case corev1.ServiceTrafficDistributionPreferClose, corev1.ServiceTrafficDistributionPreferSameZone,
		corev1.ServiceTrafficDistributionPreferSameNode:
		return PreferZone
	}
	if prefer == "none" {
		return PreferNone
	}
	return PreferDefault
}

// tierCount is how many tiers there are at most.
const tierCount = 4

// tiers are those of the runs of a headless service for who asks: nil where no endpoint comes before another.
func (s *Service) tiers(q *Question) []uint16 {
	prefer := s.imported.prefer
	if prefer == PreferDefault {
		prefer = q.Prefer
	}
	place := q.Client.Place
	if prefer <= PreferNone || place.topology == nil {
		return nil
	}
	tiers := make([]uint16, len(s.runs))
	for i := range s.runs {
		tiers[i] = place.tier(prefer, s.runs[i].cluster, s.runs[i].zone)
	}
	return tiers
}

// nearest is addresses with those of the nearest tier alone that has some of the family: a client that has but one
// family is not to go without because the other one is nearer.
func (b answerBuilder) nearest(size uint8, tiers []uint16) Answer {
	runs := b.service.runs
	near := uint16(math.MaxUint16)
	for i := range runs {
		if runs[i].inService && runs[i].size == size {
			near = min(near, tiers[i])
		}
	}
	service := &Service{imported: b.service.imported}
	for i := range runs {
		if tiers[i] == near && runs[i].inService && runs[i].size == size {
			service.runs = append(service.runs, runs[i])
		}
	}
	b.service = service
	answer, _ := b.addresses(size)
	return answer
}

// takeByTier takes records up to the limit and up to what fits, the nearest first, and returns whether the limit was
// reached.
func (s *serviceList) takeByTier(limit int, spread bool) bool {
	all := s.numbers
	defer func() { s.numbers = all }()
	for tier := range uint16(tierCount) {
		n := 0
		s.numbers = slices.Clone(all)
		for i := range all {
			if s.tiers[i] != tier {
				s.numbers[i] = nil
			}
			n += s.service.runs[i].len() * len(s.numbers[i])
		}
		if n > 0 && !s.take(min(n, limit-len(s.picks)), n, spread) {
			return false
		}
	}
	return true
}
