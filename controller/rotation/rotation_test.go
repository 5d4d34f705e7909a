// SPDX-License-Identifier: Apache-2.0

package rotation

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"
)

var noon = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

func jwt(sub string, issued, expires time.Time) string {
	payload := fmt.Sprintf(`{"sub": %q, "iat": %d, "exp": %d}`, sub, issued.Unix(), expires.Unix())
	return "e30." + base64.RawURLEncoding.EncodeToString([]byte(payload)) + ".c2ln"
}

func TestParse(t *testing.T) {
	const account = "system:serviceaccount:clusterset-dns:clusterset-member-east.eu"
	got, ok := Parse(jwt(account, noon, noon.Add(time.Hour)))
	if want := "clusterset-member-east.eu"; !ok || got.Account != want || got.Namespace != "clusterset-dns" ||
		!got.Issued.Equal(noon) || !got.Expires.Equal(noon.Add(time.Hour)) || !got.Renewed() {
		t.Errorf("got %+v, %v", got, ok)
	}
	good := jwt(account, noon, noon.Add(time.Hour))
	for _, text := range []string{
		"", "a.b", "token-of-east", good + "\n", good + " ", good + "\"\nusers: []", "e30.!.c2ln", "e30.e30", ".e30.",
		"e30." + base64.RawURLEncoding.EncodeToString([]byte("[]")) + ".c2ln", good + strings.Repeat("a", maxToken),
	} {
		if got, ok := Parse(text); ok {
			t.Errorf("%.80q: got %+v", text, got)
		}
	}
	for name, text := range map[string]string{
		"the account of all readers": jwt("system:serviceaccount:clusterset-dns:clusterset-member", noon, noon.Add(time.Hour)),
		"the controller":             jwt("system:serviceaccount:clusterset-dns:clusterset-controller", noon, noon.Add(time.Hour)),
		"no service account":         jwt("clusterset-member-east", noon, noon.Add(time.Hour)),
		"no end":                     jwt(account, noon, time.Unix(0, 0)),
		"no beginning":               jwt(account, time.Unix(0, 0), noon),
		"an end before it begins":    jwt(account, noon, noon.Add(-time.Hour)),
	} {
		if got, ok := Parse(text); !ok || got.Renewed() {
			t.Errorf("%s: got %+v, %v", name, got, ok)
		}
	}
}

func TestWhen(t *testing.T) {
	day := Token{Issued: noon, Expires: noon.Add(24 * time.Hour), Namespace: "a", Account: "clusterset-member-east"}
	for _, test := range []struct {
		name  string
		held  Token
		known bool
		after time.Duration
		want  bool
	}{
		{"new", day, true, 0, false},
		{"before the half", day, true, 12*time.Hour - time.Second, false},
		{"at the half", day, true, 12 * time.Hour, true},
		{"ended", day, true, 48 * time.Hour, true},
		{"none", Token{}, false, 0, true},
		{"without an end", Token{Account: day.Account}, true, 0, true},
		{"of another account", Token{Issued: day.Issued, Expires: day.Expires, Account: "clusterset-member-west"}, true, 0, true},
	} {
		if got := Due(test.held, test.known, day.Account, noon.Add(test.after)); got != test.want {
			t.Errorf("%s: due %v", test.name, got)
		}
	}
	if got := day.Fetch(0); !got.Equal(noon.Add(12 * time.Hour)) {
		t.Errorf("fetched at %v", got)
	}
	if got := day.Fetch(0.5); !got.Equal(noon.Add(13*time.Hour + 12*time.Minute)) {
		t.Errorf("fetched at %v", got)
	}
	for life, want := range map[time.Duration]time.Duration{
		10 * time.Minute: 30 * time.Second, 24 * time.Hour: 36 * time.Minute, 1440 * time.Hour: time.Hour,
	} {
		if got := (Token{Issued: noon, Expires: noon.Add(life)}).Retry(); got != want {
			t.Errorf("a life of %v: retried after %v, want %v", life, got, want)
		}
	}
}

func TestReplaces(t *testing.T) {
	has := Token{Issued: noon, Expires: noon.Add(time.Hour), Namespace: "a", Account: "clusterset-member-east"}
	for name, test := range map[string]struct {
		change func(*Token)
		want   bool
	}{
		"later":             {func(t *Token) { t.Expires = t.Expires.Add(time.Second) }, true},
		"the same":          {func(*Token) {}, false},
		"earlier":           {func(t *Token) { t.Expires = t.Expires.Add(-time.Second) }, false},
		"another account":   {func(t *Token) { t.Account, t.Expires = t.Account+"2", noon.Add(2*time.Hour) }, false},
		"another namespace": {func(t *Token) { t.Namespace, t.Expires = "b", noon.Add(2*time.Hour) }, false},
	} {
		offered := has
		test.change(&offered)
		if got := offered.Replaces(has); got != test.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

// FuzzParse: whatever a member hands over, what is accepted has only the characters of a token.
func FuzzParse(f *testing.F) {
	f.Add(jwt("system:serviceaccount:a:clusterset-member-east", noon, noon.Add(time.Hour)))
	f.Add("e30.e30.e30")
	f.Fuzz(func(t *testing.T, text string) {
		if _, ok := Parse(text); ok && strings.ContainsAny(text, " \n\r\t\"':{}[]#&*!|>%@`") {
			t.Errorf("accepted %q", text)
		}
	})
}
