// SPDX-License-Identifier: Apache-2.0

package member

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
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
		return lifeOfToken(strings.TrimSpace(string(token)))
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

// lifeOfToken returns the claims iat and exp of a JSON Web Token (RFC 7519, section 4.1).
func lifeOfToken(token string) Life {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return Life{}
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return Life{}
	}
	var claims struct {
		Issued  int64 `json:"iat"`
		Expires int64 `json:"exp"`
	}
	if json.Unmarshal(payload, &claims) != nil {
		return Life{}
	}
	at := func(seconds int64) time.Time {
		if seconds == 0 {
			return time.Time{}
		}
		return time.Unix(seconds, 0)
	}
	return Life{Issued: at(claims.Issued), Expires: at(claims.Expires)}
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
