// SPDX-License-Identifier: Apache-2.0

package member

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// HeartbeatHistoryAnnotation carries the History of a heartbeat.
const HeartbeatHistoryAnnotation = "clusterset-dns.github.io/history"

// Bounds of a History: entries that are kept, and bytes of text that are read.
const (
	maxSeries      = 16
	maxHistoryText = 1024
)

// A History tells which renewals precede a heartbeat in etcd, the newest series first. An etcd that is restored from a
// backup loses renewals: no later History includes them.
type History []Series

// A Series is renewals of one process, each on top of the one before. A failed renewal ends it.
type Series struct {
	// ID is random.
	ID string
	// Renewals is the number of renewals.
	Renewals uint64
}

// SetHistory writes the History of a renewal, whose renewTime is set, into its Lease.
func SetHistory(lease *coordinationv1.Lease, history History) {
	metav1.SetMetaDataAnnotation(&lease.ObjectMeta, HeartbeatHistoryAnnotation,
		fmt.Sprintf("%s@%d", history, lease.Spec.RenewTime.UnixMicro()))
}

// HistoryOf returns the History of a heartbeat Lease, nil if there is none. A controller that writes none renews the
// Lease and keeps the annotation, which then has another renewTime.
func HistoryOf(lease *coordinationv1.Lease) History {
	text, renewed, _ := strings.Cut(lease.Annotations[HeartbeatHistoryAnnotation], "@")
	if text == "" || len(text) > maxHistoryText || lease.Spec.RenewTime == nil ||
		renewed != strconv.FormatInt(lease.Spec.RenewTime.UnixMicro(), 10) {
		return nil
	}
	var history History
	for each := range strings.SplitSeq(text, ",") {
		id, number, _ := strings.Cut(each, ":")
		renewals, err := strconv.ParseUint(number, 10, 64)
		if err != nil || id == "" {
			return nil
		}
		history = append(history, Series{id, renewals})
	}
	return history
}

// String returns the series as text.
func (h History) String() string {
	parts := make([]string, len(h))
	for i, each := range h {
		parts[i] = each.ID + ":" + strconv.FormatUint(each.Renewals, 10)
	}
	return strings.Join(parts, ",")
}

// Next returns the History of the next renewal of the same series.
func (h History) Next() History {
	next := slices.Clone(h)
	next[0].Renewals++
	return next
}

// Begin returns the History of the first renewal of a new series.
func (h History) Begin(id string) History {
	return append(History{{id, 1}}, h[:min(len(h), maxSeries-1)]...)
}

// Includes reports whether the heartbeat of another History is known to be this one, or to precede it in etcd.
func (h History) Includes(other History) bool {
	return len(other) > 0 && slices.ContainsFunc(h, func(each Series) bool {
		return each.ID == other[0].ID && each.Renewals >= other[0].Renewals
	})
}
