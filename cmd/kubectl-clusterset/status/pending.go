// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"slices"
	"time"

	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/liveness"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
)

// Pending returns why the clusters are not ready, the first reason per cluster,
// or nothing if they are. A cluster is ready if its controller runs, the other
// clusters are its members, all members are fresh, what they publish is
// imported, and the imports are ready. Imports of other implementations do not
// count.
func Pending(statuses []Status) []string {
	var pending []string
	for i := range statuses {
		if why := statuses[i].pending(statuses); why != "" {
			pending = append(pending, statuses[i].Context+": "+why)
		}
	}
	return pending
}

func (s *Status) pending(all []Status) string {
	switch {
	case s.Unreachable != "":
		return "unreachable: " + s.Unreachable
	case s.Heartbeat == nil:
		return "no heartbeat"
	}
	if silent := s.now.Sub(s.Heartbeat.Time); silent > 3*member.HeartbeatInterval {
		return fmt.Sprintf("the last heartbeat is %s old", silent.Round(time.Second))
	}
	for i := range all {
		if id := all[i].Cluster; id != "" && id != s.Cluster &&
			!slices.ContainsFunc(s.Members, func(m Member) bool { return m.Cluster == id }) {
			return id + " is not a member"
		}
	}
	for _, m := range s.Members {
		if m.State != liveness.Fresh.String() {
			return fmt.Sprintf("member %s is %s", m.Cluster, m.State)
		}
	}
	for _, m := range s.Members {
		if m.Behind != nil && *m.Behind > 0 {
			return fmt.Sprintf("%d services of member %s are not up to date", *m.Behind, m.Cluster)
		}
	}
	for _, i := range s.Imports {
		if i.Reason == string(v1beta1.ServiceImportReasonReady) || i.Reason == reasonForeign {
			continue
		}
		why := fmt.Sprintf("import %s/%s is not ready (%s)", i.Namespace, i.Name, i.Reason)
		if i.Message != "" {
			why += ": " + i.Message
		}
		return why
	}
	return ""
}
