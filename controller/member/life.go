// SPDX-License-Identifier: Apache-2.0

package member

import (
	"os"
	"strings"
	"time"

	"k8s.io/client-go/util/cert"
)

// A Life is the validity of a credential. A zero time is unknown, or no end.
type Life struct {
	Issued, Expires time.Time
}

// Life returns the validity of the credential: that of its token, whose file is read at each call, or else of its client
// certificate. The signature of a token is not verified.
func (c Credential) Life() Life {
	if c.Config == nil {
		return Life{}
	}
	token := c.Config.BearerToken
	if file := c.Config.BearerTokenFile; file != "" { // client-go prefers it, too
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

// Ending reports whether the credential ends within a fifth of its life, or has ended: its renewal failed, or nothing
// renews it. A credential whose beginning is unknown is ending in its last week.
func (l Life) Ending(now time.Time) bool {
	if l.Expires.IsZero() {
		return false
	}
	left := 7 * 24 * time.Hour
	if !l.Issued.IsZero() {
		left = min(left, l.length()/5)
	}
	return l.Expires.Sub(now) < left
}
