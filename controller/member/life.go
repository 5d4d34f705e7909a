// SPDX-License-Identifier: Apache-2.0

package member

import (
	"os"
	"strings"
	"time"

	"k8s.io/client-go/util/cert"
)

// A Life is the validity period of a credential. A zero time means unknown or, for Expires, never.
type Life struct {
	Issued, Expires time.Time
}

// Life returns the validity period of the credential's token or, without a token, of its client certificate. A token file is
// read at each call. The signature of a token is not verified.
func (c Credential) Life() Life {
	if c.Config == nil {
		return Life{}
	}
	token := c.Config.BearerToken
	if file := c.Config.BearerTokenFile; file != "" {
		read, _ := os.ReadFile(file)
		token = strings.TrimSpace(string(read))
	}
	if token != "" {
		claims, _ := ParseToken(token)
		return claims.Life
	}
	certificates, err := cert.ParseCertsPEM(c.Config.CertData)
	if err != nil {
		return Life{}
	}
	return Life{Issued: certificates[0].NotBefore, Expires: certificates[0].NotAfter}
}

// Ending reports whether the credential has expired or is in the last sixth of its life, but at most its last week: its renewal
// failed, or nothing renews it. The kubelet renews a token a minute or two into its last fifth. If Issued is unknown, only the
// last week counts.
func (l Life) Ending(now time.Time) bool {
	if l.Expires.IsZero() {
		return false
	}
	return l.Expires.Sub(now) < min(7*24*time.Hour, l.length()/6) // of a life that began at the zero time, the last week
}
