// SPDX-License-Identifier: Apache-2.0

package member

import (
	"crypto/x509"
	"encoding/pem"
	"os"
	"strings"
	"time"
)

// A Life is the validity of a credential. A zero time is unknown, or no end.
type Life struct {
	Issued, Expires time.Time
}

// Life returns the validity of the credential: that of its token, or else of its client certificate. Files are read at
// each call. The signature of a token is not verified.
func (c Credential) Life() Life {
	if c.Config == nil {
		return Life{}
	}
	if token := content([]byte(c.Config.BearerToken), c.Config.BearerTokenFile); len(token) > 0 {
		claims, _ := ParseToken(strings.TrimSpace(string(token)))
		return claims.Life
	}
	return lifeOfCertificate(content(c.Config.CertData, c.Config.CertFile))
}

// content returns what a file has, or the data without a file. client-go prefers the file of a token, too, and sets only
// one of the two for a certificate.
func content(data []byte, file string) []byte {
	if file == "" {
		return data
	}
	read, err := os.ReadFile(file)
	if err != nil {
		return nil
	}
	return read
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

// lifeOfCertificate returns the validity of the first certificate in PEM.
func lifeOfCertificate(text []byte) Life {
	block, _ := pem.Decode(text)
	if block == nil {
		return Life{}
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return Life{}
	}
	return Life{Issued: certificate.NotBefore, Expires: certificate.NotAfter}
}
