// SPDX-License-Identifier: Apache-2.0

package mailbox

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

// heartbeatStatement is the signed statement about a heartbeat.
type heartbeatStatement struct {
	header
	Root Digest `json:"root"`
	// Renewed is the renewTime of the heartbeat Lease in microseconds of Unix time.
	Renewed     int64             `json:"renewed"`
	Duration    *int32            `json:"duration,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// A Heartbeat is a verified heartbeat of a mailbox.
type Heartbeat struct {
	// Counter is higher than those of all statements that the key has signed before.
	Counter int64
	// Root is that of the Ledger of the mailbox when the heartbeat was written.
	Root Digest
	// Lease is the heartbeat as a member reads it from the cluster itself. Its resourceVersion is the counter.
	Lease *coordinationv1.Lease
}

// Lease returns the record of a heartbeat Lease of the source, without a namespace. The ledger is that of the mailbox.
func Lease(key ed25519.PrivateKey, source Source, counter int64, ledger *Ledger, heartbeat *coordinationv1.Lease) (
	*coordinationv1.Lease, error,
) {
	if heartbeat.Spec.RenewTime == nil {
		return nil, errors.New("the heartbeat has no renewTime")
	}
	annotations := map[string]string{}
	for name, value := range heartbeat.Annotations {
		if isHeartbeatAnnotation(name) {
			annotations[name] = value
		}
	}
	statement, err := sign(kindHeartbeat, key, heartbeatStatement{
		header:  header{Version: version, Source: source, Counter: counter},
		Root:    ledger.Root(),
		Renewed: heartbeat.Spec.RenewTime.UnixMicro(), Duration: heartbeat.Spec.LeaseDurationSeconds,
		Annotations: annotations,
	})
	if err != nil {
		return nil, err
	}
	if len(statement) > maxHeartbeatStatement {
		return nil, fmt.Errorf("the statement about the heartbeat has %d bytes: readers take at most %d", len(statement),
			maxHeartbeatStatement)
	}
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{
			Name:        HeartbeatLease,
			Labels:      map[string]string{export.LabelSourceCluster: source.Cluster},
			Annotations: map[string]string{StatementAnnotation: statement},
		},
		// For administrators. Readers take nothing but the statement.
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: &source.Cluster, RenewTime: heartbeat.Spec.RenewTime,
			LeaseDurationSeconds: heartbeat.Spec.LeaseDurationSeconds,
		},
	}, nil
}

// VerifyLease returns the heartbeat of a record, if the source has signed it with one of the keys.
func VerifyLease(keys []ed25519.PublicKey, source Source, record *coordinationv1.Lease) (*Heartbeat, error) {
	statement, err := verify[heartbeatStatement](kindHeartbeat, maxHeartbeatStatement, keys, source,
		record.Annotations[StatementAnnotation])
	if err != nil {
		return nil, err
	}
	annotations := map[string]string{}
	for name, value := range statement.Annotations {
		if isHeartbeatAnnotation(name) {
			annotations[name] = value
		}
	}
	return &Heartbeat{
		Counter: statement.Counter, Root: statement.Root,
		Lease: &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{
				Name: HeartbeatLease, ResourceVersion: strconv.FormatInt(statement.Counter, 10), Annotations: annotations,
			},
			Spec: coordinationv1.LeaseSpec{
				HolderIdentity: &statement.Cluster, LeaseDurationSeconds: statement.Duration,
				RenewTime: ptr.To(metav1.NewMicroTime(time.UnixMicro(statement.Renewed))),
			},
		},
	}, nil
}

// isHeartbeatAnnotation reports whether members may read the annotation of a heartbeat Lease.
func isHeartbeatAnnotation(key string) bool {
	return strings.HasPrefix(key, export.Domain+"/") && key != StatementAnnotation
}
