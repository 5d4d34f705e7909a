// SPDX-License-Identifier: Apache-2.0

package member

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"
)

var noon = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

// jwt returns an unsigned JSON Web Token.
func jwt(claims string) string {
	return "e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".c2ln"
}

// tokenOf is a token of a subject.
func tokenOf(sub string, issued, expires time.Time) string {
	return jwt(fmt.Sprintf(`{"sub": %q, "iat": %d, "exp": %d}`, sub, issued.Unix(), expires.Unix()))
}

func TestParseToken(t *testing.T) {
	const account = "system:serviceaccount:clusterset-dns:clusterset-member-east.eu"
	got, ok := ParseToken(tokenOf(account, noon, noon.Add(time.Hour)))
	if want := "clusterset-member-east.eu"; !ok || got.Account != want || got.Namespace != "clusterset-dns" ||
		!got.Issued.Equal(noon) || !got.Expires.Equal(noon.Add(time.Hour)) || !got.renewable() {
		t.Errorf("got %+v, %v", got, ok)
	}
	good := tokenOf(account, noon, noon.Add(time.Hour))
	for _, text := range []string{
		"", "a.b", "token-of-east", good + "\n", good + " ", good + "\"\nusers: []", "e30.!.c2ln", "e30.e30", ".e30.",
		jwt("[]"), good + strings.Repeat("a", maxToken),
	} {
		if got, ok := ParseToken(text); ok {
			t.Errorf("%.80q: got %+v", text, got)
		}
	}
	for name, text := range map[string]string{
		"the account of all readers": tokenOf("system:serviceaccount:clusterset-dns:clusterset-member", noon, noon.Add(time.Hour)),
		"the controller":             tokenOf("system:serviceaccount:clusterset-dns:clusterset-controller", noon, noon.Add(time.Hour)),
		"no service account":         tokenOf("clusterset-member-east", noon, noon.Add(time.Hour)),
		"no end":                     tokenOf(account, noon, time.Unix(0, 0)),
		"no beginning":               tokenOf(account, time.Unix(0, 0), noon),
		"an end before it begins":    tokenOf(account, noon, noon.Add(-time.Hour)),
	} {
		if got, ok := ParseToken(text); !ok || got.renewable() {
			t.Errorf("%s: got %+v, %v", name, got, ok)
		}
	}
}

// TestEnding: a credential is ending in the last sixth of its life, but at most its last week. The kubelet renews a token of an
// hour after 48 to 50 minutes.
func TestEnding(t *testing.T) {
	day := 24 * time.Hour
	for _, test := range []struct {
		life  Life
		after time.Duration
		want  bool
	}{
		{Life{}, 0, false},
		{Life{Issued: noon}, 0, false},
		{Life{Issued: noon, Expires: noon.Add(time.Hour)}, 49 * time.Minute, false},
		{Life{Issued: noon, Expires: noon.Add(time.Hour)}, 51 * time.Minute, true},
		{Life{Issued: noon, Expires: noon.Add(time.Hour)}, 2 * time.Hour, true},
		{Life{Issued: noon, Expires: noon.Add(365 * day)}, 357 * day, false},
		{Life{Issued: noon, Expires: noon.Add(365 * day)}, 359 * day, true},
		{Life{Expires: noon.Add(8 * day)}, 0, false},
		{Life{Expires: noon.Add(6 * day)}, 0, true},
	} {
		if got := test.life.Ending(noon.Add(test.after)); got != test.want {
			t.Errorf("%+v after %v: %t", test.life, test.after, got)
		}
	}
}

// FuzzParseToken: an accepted text has only the characters of a token.
func FuzzParseToken(f *testing.F) {
	f.Add(tokenOf("system:serviceaccount:a:clusterset-member-east", noon, noon.Add(time.Hour)))
	f.Add("e30.e30.e30")
	f.Fuzz(func(t *testing.T, text string) {
		if _, ok := ParseToken(text); ok && strings.ContainsAny(text, " \n\r\t\"':{}[]#&*!|>%@`") {
			t.Errorf("accepted %q", text)
		}
	})
}
