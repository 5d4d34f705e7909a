// SPDX-License-Identifier: Apache-2.0

package member

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// ValidateID returns an error unless id is a valid cluster id: one RFC 1123 label, or two joined with a dot, of at most
// 63 characters (KEP-2149), because it is a label value, too.
func ValidateID(id string) error {
	first, second, two := strings.Cut(id, ".")
	if len(id) > validation.LabelValueMaxLength || len(validation.IsDNS1123Label(first)) > 0 ||
		two && len(validation.IsDNS1123Label(second)) > 0 {
		return fmt.Errorf("cluster id %q: use a DNS label, or two joined with a dot, of at most %d characters", id, validation.LabelValueMaxLength)
	}
	return nil
}
