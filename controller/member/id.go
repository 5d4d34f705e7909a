// SPDX-License-Identifier: Apache-2.0

package member

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// maxIDLength is the maximum length of a label value, which a cluster id must be.
const maxIDLength = validation.LabelValueMaxLength

// ValidateID returns an error unless id is a valid cluster id: one RFC 1123 label, or two joined with a dot, of at most
// 63 characters (KEP-2149).
func ValidateID(id string) error {
	if id == "" {
		return fmt.Errorf("the cluster id is empty: use a DNS label, or two joined with a dot")
	}
	if len(id) > maxIDLength {
		return fmt.Errorf("cluster id %q has %d characters: use at most %d", id, len(id), maxIDLength)
	}
	parts := strings.Split(id, ".")
	if len(parts) > 2 {
		return fmt.Errorf("cluster id %q has %d labels: use a DNS label, or two joined with a dot", id, len(parts))
	}
	for _, part := range parts {
		if problems := validation.IsDNS1123Label(part); len(problems) > 0 {
			return fmt.Errorf("cluster id %q: %s", id, strings.Join(problems, "; "))
		}
	}
	return nil
}
