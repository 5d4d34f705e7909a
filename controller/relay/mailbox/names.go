// SPDX-License-Identifier: Apache-2.0

package mailbox

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

// Names in the controller's namespace.
const (
	// RelayLabel marks a Secret with a kubeconfig as a relay. Its value is the name of the relay.
	RelayLabel = export.Domain + "/relay"
	// PublicKeysKey is the key of the public keys in the data of a member's Secret.
	PublicKeysKey = "public-keys"
	// SigningKeySecret is the name of the Secret with the signing key of the local cluster, and SigningKeyKey its key in
	// the data, as in any Secret of type kubernetes.io/tls.
	SigningKeySecret = "clusterset-dns-signing-key"
	SigningKeyKey    = "tls.key"
)

// Names in a mailbox.
const (
	// DefaultPrefix begins the names of mailboxes, unless the context of the relay's kubeconfig names a namespace.
	DefaultPrefix = "clusterset-relay"
	// HeartbeatLease is the name of the Lease with the heartbeat, the same as in the cluster itself.
	HeartbeatLease = "clusterset-dns-heartbeat"
	// StatementAnnotation on that Lease is the signed Heartbeat.
	StatementAnnotation = export.Domain + "/statement"
	// StatementKey in the data of a ConfigMap is the signed statement about the slice.
	StatementKey = "statement"
	// SliceKey in the binary data of a ConfigMap is the slice.
	SliceKey = "slice"
)

// digits are those of a digest in a name.
const digits = 16

// Namespace returns the name of the mailbox of a cluster. An empty prefix is DefaultPrefix. An id with a dot, or that is
// too long, has a dash and a digest instead.
func Namespace(prefix, cluster string) string {
	if prefix == "" {
		prefix = DefaultPrefix
	}
	name := prefix + "-" + cluster
	if !strings.Contains(cluster, ".") && len(name) <= validation.DNS1123LabelMaxLength {
		return name
	}
	name = strings.ReplaceAll(name, ".", "-")
	keep := min(len(name), validation.DNS1123LabelMaxLength-digits-1)
	return strings.TrimRight(name[:keep], "-") + "-" + digest(cluster)
}

// Selector returns the label selector of the records of a cluster in its mailbox.
func Selector(source Source) string {
	return export.LabelSourceCluster + "=" + source.Cluster + "," + source.Set.Selector()
}

// RecordName returns the name of the ConfigMap of a slice. Slices of all namespaces share a mailbox.
func RecordName(slice types.NamespacedName) string {
	name := strings.ReplaceAll(slice.Name, ".", "-")
	return strings.TrimRight(name[:min(len(name), 60)], "-") + "-" + digest(slice.String())
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])[:digits]
}
