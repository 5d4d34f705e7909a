// SPDX-License-Identifier: Apache-2.0

package member

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

// readers is the subject of the tokens with which east reads a cluster.
const readers = "system:serviceaccount:clusterset-dns:clusterset-member-east"

// readerToken is a token of the account with which east reads a cluster.
func readerToken(issued time.Time, life time.Duration) string {
	return tokenOf(readers, issued, issued.Add(life))
}

// exporter issues tokens of one account, unless it is down, or the requesting token has expired.
type exporter struct {
	down   atomic.Bool
	asked  int
	names  map[string]bool
	using  *string
	answer string // instead of a token of the account, if it is set
}

// createToken implements clienttesting.ReactionFunc.
func (e *exporter) createToken(action clienttesting.Action) (bool, runtime.Object, error) {
	asked := action.(clienttesting.CreateActionImpl)
	request := asked.Object.(*authenticationv1.TokenRequest)
	e.asked++
	e.names[asked.Name] = true
	if using, _ := ParseToken(*e.using); e.down.Load() || time.Now().After(using.Expires) {
		return true, nil, apierrors.NewUnauthorized("ended")
	}
	life := time.Duration(*request.Spec.ExpirationSeconds) * time.Second
	request.Status.Token = cmp.Or(e.answer, readerToken(time.Now(), life))
	return true, request, nil
}

// holding is a member with the Secret held, whose tokens the exporter issues.
func (e *exporter) holding(t *testing.T, held *corev1.Secret) *Member {
	t.Helper()
	credential, err := ParseKubeconfig(held.Data[KubeconfigKey])
	must(t, err)
	m := (&surroundings{}).member(Config{Clock: clock.RealClock{}}, ofSecret(held))
	m.registration.Store(&registration{candidate: ofSecret(held), credential: credential})
	client := &fake.Clientset{}
	client.AddReactor("create", "serviceaccounts/token", e.createToken)
	m.core = client.CoreV1()
	return m
}

// heldToken is a Secret with the kubeconfig of a token.
func heldToken(token string) *corev1.Secret {
	return secret("member-west", "west", kubeconfig(`{token: `+token+`}`, aServer))
}

// TestRenewToken: a token is renewed for a year, although the member is unreachable for a third of each life.
func TestRenewToken(t *testing.T) {
	for _, life := range []time.Duration{24 * time.Hour, 1440 * time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			token := readerToken(time.Now(), life)
			e := &exporter{names: map[string]bool{}, using: &token}
			held := heldToken(token)
			held.ResourceVersion, held.Annotations = "0", map[string]string{RankAnnotation: "3"}
			held.Data["more"] = []byte("stays")
			year := time.Now().Add(365 * 24 * time.Hour)
			written := 0
			for time.Now().Before(year) {
				m := e.holding(t, held)
				ctx, replaced := context.WithTimeout(klog.NewContext(t.Context(), logr.Discard()), 2*life)
				conflicts := 1
				m.set.config.SaveSecret = func(_ context.Context, changed *corev1.Secret) error {
					if changed.ResourceVersion != fmt.Sprint(written) || changed.Annotations[RankAnnotation] != "3" ||
						string(changed.Data["more"]) != "stays" {
						t.Errorf("written: %v", changed)
					}
					if conflicts--; conflicts == 0 {
						return errors.New("conflict")
					}
					written++
					held = changed.DeepCopy()
					held.ResourceVersion = fmt.Sprint(written)
					replaced()
					return nil
				}
				time.AfterFunc(life/2, func() { e.down.Store(true) })
				time.AfterFunc(life/2+life/3, func() { e.down.Store(false) })
				m.renewToken(ctx)
				config, err := clientcmd.Load(held.Data[KubeconfigKey])
				must(t, err)
				token = config.AuthInfos["u"].Token
				if has, _ := ParseToken(token); time.Until(has.Expires) < life/10 {
					t.Fatalf("%v left of %v", time.Until(has.Expires), life)
				}
			}
			if most := int(365 * 24 * time.Hour / (life / 40)); written == 0 || e.asked > most {
				t.Errorf("%d tokens written, asked %d times, want at most %d", written, e.asked, most)
			}
			if len(e.names) != 1 || !e.names["clusterset-member-east"] {
				t.Errorf("asked for %v", e.names)
			}
		})
	}
}

// TestTokenOfAnotherAccount: the token that a member returns is used only if it is of the same account, and expires later.
func TestTokenOfAnotherAccount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		token := readerToken(time.Now(), time.Hour)
		later := time.Now().Add(2 * time.Hour)
		for name, answer := range map[string]string{
			"the controller":    tokenOf("system:serviceaccount:clusterset-dns:clusterset-controller", time.Now(), later),
			"another reader":    tokenOf("system:serviceaccount:clusterset-dns:clusterset-member-west", time.Now(), later),
			"another namespace": tokenOf("system:serviceaccount:other:clusterset-member-east", time.Now(), later),
			"no later end":      token,
			"no token":          "users: []",
		} {
			e := &exporter{names: map[string]bool{}, using: &token, answer: answer}
			m := e.holding(t, heldToken(token))
			m.set.config.SaveSecret = func(context.Context, *corev1.Secret) error { t.Errorf("%s is written", name); return nil }
			has, _ := ParseToken(token)
			if err := m.replaceToken(t.Context(), has, token); err == nil || e.asked != 1 {
				t.Errorf("%s: %v after %d requests", name, err, e.asked)
			}
		}
	})
}

// TestNotRenewed: tokens of other accounts, or in Secrets of another system, cost no request.
func TestNotRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		now := time.Now()
		for name, change := range map[string]func(*registration){
			"another token":        func(s *registration) { s.credential.Config.BearerToken = "secret" },
			"another namespace":    func(s *registration) { s.credential.Namespace = "elsewhere" },
			"no Secret":            func(s *registration) { s.candidate.Object = nil },
			"a Secret of a source": func(s *registration) { s.candidate.Source = "clusterprofile:fleet" },
		} {
			token := readerToken(now, time.Hour)
			e := &exporter{names: map[string]bool{}, using: &token}
			m := e.holding(t, heldToken(token))
			change(m.registration.Load())
			m.renewToken(ctx)
			if e.asked > 0 {
				t.Errorf("%s: %d requests", name, e.asked)
			}
		}
	})
}

// FuzzReplaceToken: whatever a kubeconfig has, only the token of its current user changes. One without a token is an error.
func FuzzReplaceToken(f *testing.F) {
	f.Add([]byte(kubeconfig(`{token: a.b.c}`, aServer)))
	f.Add([]byte(kubeconfig(`{token: u}`, aServer)))
	f.Add([]byte(kubeconfig(`{client-certificate-data: eA==}`, aServer)))
	f.Add([]byte("apiVersion: v1\nkind: Config"))
	f.Fuzz(func(t *testing.T, text []byte) {
		got, err := ReplaceToken(text, "d.e.f")
		if err != nil {
			return
		}
		before, err := clientcmd.Load(text)
		must(t, err)
		after, err := clientcmd.Load(got)
		must(t, err)
		user := before.Contexts[before.CurrentContext].AuthInfo
		if before.AuthInfos[user].Token == "" || after.AuthInfos[user].Token != "d.e.f" || after.CurrentContext != before.CurrentContext ||
			len(after.AuthInfos) != len(before.AuthInfos) || len(after.Clusters) != len(before.Clusters) {
			t.Errorf("%q became %q", text, got)
		}
	})
}
