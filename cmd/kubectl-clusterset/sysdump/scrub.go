// SPDX-License-Identifier: Apache-2.0

package sysdump

import (
	"encoding/base64"
	"regexp"
	"slices"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// redacted replaces a secret.
const redacted = "<redacted>"

// minSecret is the length from which a value is looked for in all files. Shorter
// ones would redact words.
const minSecret = 8

// A scrubber removes secrets from text: those that it learned, and whatever
// looks like one. Its patterns prefer to redact too much.
type scrubber struct {
	known map[string]bool
}

// learn has a secret value redacted wherever it appears, as it is or in base64.
func (s *scrubber) learn(value string) {
	value = strings.TrimSpace(value)
	if len(value) < minSecret {
		return
	}
	if s.known == nil {
		s.known = map[string]bool{}
	}
	for _, text := range []string{
		value, base64.StdEncoding.EncodeToString([]byte(value)), base64.RawURLEncoding.EncodeToString([]byte(value)),
	} {
		s.known[text] = true
	}
}

// learnSecret learns the value of a key of a Secret. The secrets in a kubeconfig
// are also learned one by one.
func (s *scrubber) learnSecret(value []byte) {
	s.learn(string(value))
	config, err := clientcmd.Load(value)
	if err != nil {
		return
	}
	for _, user := range config.AuthInfos {
		for _, secret := range []string{user.Token, user.Password, string(user.ClientKeyData)} {
			s.learn(secret)
		}
	}
}

// learnConfig learns the credentials of the user.
func (s *scrubber) learnConfig(config *rest.Config) {
	for _, secret := range []string{config.BearerToken, config.Password, string(config.KeyData)} {
		s.learn(secret)
	}
}

const quote = `(?:\\*["'])?`

// patterns find what looks like a secret. The first group is kept.
var patterns = []*regexp.Regexp{
	regexp.MustCompile(`(?s)()-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----.*?(?:-----END [A-Z0-9 ]*PRIVATE KEY-----|$)`),
	// JSON Web Tokens, such as those of service accounts.
	regexp.MustCompile(`()eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}(?:\.[A-Za-z0-9_-]*)?`),
	// Fields of kubeconfigs, flags and log lines.
	regexp.MustCompile(`(?i)((?:^|[^a-z])(?:(?:access|id|refresh|bearer)?[_-]?token|password|passwd|client-key-data|` +
		`client[_-]?secret|api[_-]?key)` + quote + `[ \t]*[:=][ \t]*)(?:[|>][-+0-9]*[ \t]*\n[ \t]*)?` + quote +
		`[^\s"',}\\]+`),
	// Flags whose value is the next word, or the next item of a list.
	regexp.MustCompile(`(?i)((?:^|[\s"'=])--?(?:[a-z0-9]+[_-])*(?:token|password|passwd|client[_-]?secret|` +
		`api[_-]?key)` + quote + `(?:[ \t]+|[ \t]*,\s*|[ \t]*\r?\n[ \t]*-[ \t]+)` + quote + `)[^\s"',}\]\\]+`),
	regexp.MustCompile(`(?i)(authorization` + quote + `[ \t]*[:=][ \t]*)[^\n]+`),
	regexp.MustCompile(`(?i)(\bbearer[ \t]+)[a-z0-9._~+/=-]{8,}`),
	// User and password in a URL.
	regexp.MustCompile(`(://)[^/\s:@"']+:[^/\s@"']+@`),
	// Options of CoreDNS's plugins etcd, route53 and tsig.
	regexp.MustCompile(`(?m)(^[ \t]*(?:credentials|aws_access_key|secret)[ \t]+)[^\n{]+`),
}

// encoded finds what may be base64 of a text with secrets.
var encoded = regexp.MustCompile(`[A-Za-z0-9+/_-]{40,}`)

// maxDepth bounds how often base64 is decoded.
const maxDepth = 3

// scrub returns the text without secrets.
func (s *scrubber) scrub(text string) string {
	known := make([]string, 0, len(s.known))
	for value := range s.known {
		known = append(known, value)
	}
	// Longer values first: one may be a part of another.
	slices.SortFunc(known, func(a, b string) int { return len(b) - len(a) })
	var pairs []string
	for _, value := range known {
		pairs = append(pairs, value, redacted)
	}
	return redact(text, strings.NewReplacer(pairs...), maxDepth)
}

func redact(text string, known *strings.Replacer, depth int) string {
	text = known.Replace(text)
	for _, pattern := range patterns {
		text = pattern.ReplaceAllString(text, "${1}"+redacted)
	}
	if depth == 0 {
		return text
	}
	return encoded.ReplaceAllStringFunc(text, func(run string) string {
		for offset := range 4 { // the run may begin with characters that are not a part of it
			aligned := run[offset : offset+(len(run)-offset)/4*4]
			for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
				decoded, err := encoding.DecodeString(aligned)
				if err == nil && redact(string(decoded), known, depth-1) != string(decoded) {
					return redacted
				}
			}
		}
		return run
	})
}
