// SPDX-License-Identifier: Apache-2.0

// Package rotation decides when tokens are renewed, and by which account of a cluster another cluster reads it. It is
// pure. docs/operate/credentials.md describes the tokens.
package rotation

import (
	"encoding/base64"
	"encoding/json"
	"regexp"
	"strings"
	"time"
)

const (
	// ReaderLabel marks the ServiceAccount by which one reader reads a cluster. Its value is the id of the reader.
	ReaderLabel = "clusterset-dns.github.io/reader"
	// TokenLabel marks the Secret that holds the token of such a ServiceAccount. Its value is the id of the reader, too.
	TokenLabel = "clusterset-dns.github.io/reader-token"
	// HeartbeatAnnotation on the heartbeat of a cluster carries the lifetime of the tokens that its controller requests for
	// readers, if it renews tokens.
	HeartbeatAnnotation = "clusterset-dns.github.io/renews-tokens"
	// TokenKey is the key of the token in the Secret's data.
	TokenKey = "token"
	// MinLifetime is the least lifetime that Kubernetes issues.
	MinLifetime = 10 * time.Minute

	accountPrefix = "clusterset-member-"
	// maxToken is more than API servers issue.
	maxToken = 16 << 10
)

// Account returns the name of the ServiceAccount of a reader.
func Account(reader string) string { return accountPrefix + reader }

// Secret returns the name of the Secret that holds the token of a ServiceAccount.
func Secret(account string) string { return account + "-token" }

// A Token is what a JSON Web Token of a ServiceAccount claims. Its signature is not verified.
type Token struct {
	// Issued and Expires are zero if they are unknown, or if the token does not end.
	Issued, Expires time.Time
	// Namespace and Account are those of the ServiceAccount, empty if the subject is another.
	Namespace, Account string
}

var (
	token   = regexp.MustCompile(`^[A-Za-z0-9_-]+\.([A-Za-z0-9_-]+)\.[A-Za-z0-9_-]+$`)
	subject = regexp.MustCompile(`^system:serviceaccount:([-a-z0-9]+):([-a-z0-9.]+)$`)
)

// Parse returns the claims of a token, false for any text that is no JSON Web Token (RFC 7519).
func Parse(text string) (Token, bool) {
	parts := token.FindStringSubmatch(text)
	if len(text) > maxToken || parts == nil {
		return Token{}, false
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return Token{}, false
	}
	var claims struct {
		Issued  int64  `json:"iat"`
		Expires int64  `json:"exp"`
		Subject string `json:"sub"`
	}
	if json.Unmarshal(payload, &claims) != nil {
		return Token{}, false
	}
	t := Token{Issued: at(claims.Issued), Expires: at(claims.Expires)}
	if found := subject.FindStringSubmatch(claims.Subject); found != nil {
		t.Namespace, t.Account = found[1], found[2]
	}
	return t, true
}

func at(seconds int64) time.Time {
	if seconds == 0 {
		return time.Time{}
	}
	return time.Unix(seconds, 0)
}

// Renewed reports whether a cluster may renew the token: it ends, and its ServiceAccount is that of one reader.
func (t Token) Renewed() bool {
	return strings.HasPrefix(t.Account, accountPrefix) && t.Expires.After(t.Issued) && !t.Issued.IsZero()
}

// Half returns when half of the life has passed, which is when the exporting cluster renews the token.
func (t Token) Half() time.Time { return t.Issued.Add(t.Expires.Sub(t.Issued) / 2) }

// Fetch returns when the reader asks for the next token: after Half, by up to a tenth of the life. random is in [0, 1).
func (t Token) Fetch(random float64) time.Time {
	return t.Half().Add(time.Duration(random * float64(t.Expires.Sub(t.Issued)) / 10))
}

// Bounds of Retry.
const (
	minRetry = 30 * time.Second
	maxRetry = time.Hour
)

// Retry returns how long the reader waits before it asks again: a fortieth of the life, within bounds.
func (t Token) Retry() time.Duration {
	return min(max(t.Expires.Sub(t.Issued)/40, minRetry), maxRetry)
}

// Replaces reports whether the token may replace another one: it is of the same ServiceAccount, and ends later.
func (t Token) Replaces(other Token) bool {
	return t.Renewed() && t.Account == other.Account && t.Namespace == other.Namespace && t.Expires.After(other.Expires)
}

// Due reports whether the exporting cluster renews the token of a reader now. held is the token in the Secret, and known
// false if there is none that can be parsed.
func Due(held Token, known bool, account string, now time.Time) bool {
	return !known || held.Account != account || !held.Renewed() || !now.Before(held.Half())
}
