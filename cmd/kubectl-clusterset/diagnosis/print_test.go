// SPDX-License-Identifier: Apache-2.0

package diagnosis

import (
	"bytes"
	"fmt"
	"testing"
)

// TestEscaped: a member that controlled the terminal of the administrator could hide its problems.
func TestEscaped(t *testing.T) {
	var out bytes.Buffer
	Table(Escaped{&out}, "", "MEMBER UID", [][]any{{"evil", "\u001b[2J\u001b]0;pwned\u0007all fine\u202e ü"}})
	fmt.Fprintln(Escaped{&out}, "✗ done\r")
	const want = "MEMBER   UID\nevil     \ufffd[2J\ufffd]0;pwned\ufffdall fine\ufffd ü\n✗ done\ufffd\n"
	if out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}
