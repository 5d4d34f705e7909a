// SPDX-License-Identifier: Apache-2.0

package member

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"time"

	"k8s.io/client-go/util/cert"
)

const (
	// ReaderLabel on a ServiceAccount: id of the cluster that reads this cluster by this account. The command join sets it.
	ReaderLabel = "clusterset-dns.github.io/reader"
	// AccountPrefix begins the name of such a ServiceAccount; the id of the reader follows.
	AccountPrefix = "clusterset-member-"
	// maxToken bounds a token, in bytes. API servers issue shorter ones.
	maxToken = 16 << 10
	// minLife is the shortest lifetime of a token that Kubernetes issues.
	minLife = 10 * time.Minute
	// minRetry is the least time between two attempts to renew a token.
	minRetry = 30 * time.Second
)

// A Token has the claims of a JSON Web Token (RFC 7519). Its signature is not verified.
type Token struct {
	Life
	// Namespace and Account name the ServiceAccount, empty if the subject is not a ServiceAccount.
	Namespace, Account string
}

var (
	tokenForm = regexp.MustCompile(`^[A-Za-z0-9_-]+\.([A-Za-z0-9_-]+)\.[A-Za-z0-9_-]+$`)
	subject   = regexp.MustCompile(`^system:serviceaccount:([-a-z0-9]+):([-a-z0-9.]+)$`)
)

// ParseToken returns the claims of a token, false for any text that is no JSON Web Token.
func ParseToken(text string) (Token, bool) {
	parts := tokenForm.FindStringSubmatch(text)
	if len(text) > maxToken || parts == nil {
		return Token{}, false
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	var claims struct {
		Issued  int64  `json:"iat"`
		Expires int64  `json:"exp"`
		Subject string `json:"sub"`
	}
	if err != nil || json.Unmarshal(payload, &claims) != nil {
		return Token{}, false
	}
	at := func(seconds int64) time.Time {
		if seconds == 0 {
			return time.Time{}
		}
		return time.Unix(seconds, 0)
	}
	t := Token{Life: Life{Issued: at(claims.Issued), Expires: at(claims.Expires)}}
	if found := subject.FindStringSubmatch(claims.Subject); found != nil {
		t.Namespace, t.Account = found[1], found[2]
	}
	return t, true
}

// renewable reports whether the reader may renew the token: it expires, and its ServiceAccount was made for one reader.
func (t Token) renewable() bool {
	return strings.HasPrefix(t.Account, AccountPrefix) && t.Expires.After(t.Issued) && !t.Issued.IsZero()
}

// replaces reports whether the token may replace another one: it is of the same ServiceAccount, and expires later.
func (t Token) replaces(other Token) bool {
	return t.renewable() && t.Account == other.Account && t.Namespace == other.Namespace && t.Expires.After(other.Expires)
}

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

// length returns how long the credential is valid in all.
func (l Life) length() time.Duration { return l.Expires.Sub(l.Issued) }
