// SPDX-License-Identifier: Apache-2.0

package tokens

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"

	"github.com/clusterset-dns/clusterset-dns/controller/rotation"
)

const namespace = "clusterset-dns"

// issuer is one of a cluster whose API server grants at most a lifetime. requested counts the requests for tokens.
func issuer(granted time.Duration, requested *int, accounts ...*corev1.ServiceAccount) *Issuer {
	var objects []runtime.Object
	for _, account := range accounts {
		objects = append(objects, account)
	}
	client := fake.NewClientset(objects...)
	client.PrependReactor("create", "serviceaccounts", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if action.GetSubresource() != "token" {
			return false, nil, nil
		}
		*requested++
		create := action.(clienttesting.CreateActionImpl)
		request := create.GetObject().(*authenticationv1.TokenRequest)
		lifetime := min(granted, time.Duration(*request.Spec.ExpirationSeconds)*time.Second)
		now := time.Now()
		payload := fmt.Sprintf(`{"sub": "system:serviceaccount:%s:%s", "iat": %d, "exp": %d}`, namespace, create.Name,
			now.Unix(), now.Add(lifetime).Unix())
		request.Status.Token = "e30." + base64.RawURLEncoding.EncodeToString([]byte(payload)) + ".c2ln"
		request.Status.ExpirationTimestamp = metav1.NewTime(now.Add(lifetime))
		return true, request, nil
	})
	return &Issuer{Client: client, Namespace: namespace, Lifetime: 1440 * time.Hour, Clock: clock.RealClock{}}
}

func account(reader, uid string) *corev1.ServiceAccount {
	return &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{
		Name: rotation.Account(reader), Namespace: namespace, UID: types.UID(uid),
		Labels: map[string]string{rotation.ReaderLabel: reader},
	}}
}

func (i *Issuer) secret(t *testing.T, reader string) *corev1.Secret {
	t.Helper()
	secret, err := i.Client.CoreV1().Secrets(namespace).Get(t.Context(), rotation.Secret(rotation.Account(reader)),
		metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return secret
}

// TestRenews lets a year pass: each token is renewed at half of the life that the API server grants, and never ends.
func TestRenews(t *testing.T) {
	for granted, want := range map[time.Duration]int{
		24 * time.Hour: 730, 48 * time.Hour: 365, 365 * 24 * time.Hour: 13, // 60 days are requested
	} {
		synctest.Test(t, func(t *testing.T) {
			requested := 0
			i := issuer(granted, &requested, account("east", "1"))
			for range 365 * 24 {
				if err := i.Pass(t.Context()); err != nil {
					t.Fatal(err)
				}
				held, ok := rotation.Parse(string(i.secret(t, "east").Data[rotation.TokenKey]))
				if left := time.Until(held.Expires); !ok || left < min(granted, i.Lifetime)/2-time.Hour {
					t.Fatalf("the token has %v left of %v", left, granted)
				}
				time.Sleep(time.Hour) //nolint:forbidigo // advances the virtual time of the synctest bubble
			}
			if requested > want || requested < want*95/100 {
				t.Errorf("granted %v: %d tokens, want %d", granted, requested, want)
			}
		})
	}
}

// TestOnlyReaders: a label does not make the token of another account readable, and one wrong account stops no other.
func TestOnlyReaders(t *testing.T) {
	requested := 0
	controller := account("west", "2")
	controller.Name = "clusterset-controller"
	i := issuer(time.Hour, &requested, controller, account("east", "1"))
	if err := i.Pass(t.Context()); err == nil || !strings.Contains(err.Error(), "clusterset-controller") {
		t.Errorf("got %v", err)
	}
	if requested != 1 {
		t.Errorf("%d tokens, want 1", requested)
	}
	secret := i.secret(t, "east")
	if secret.Type == corev1.SecretTypeServiceAccountToken || secret.OwnerReferences[0].UID != "1" ||
		secret.Labels[rotation.TokenLabel] != "east" {
		t.Errorf("Secret %v", secret.ObjectMeta)
	}
}

// TestAnotherAccount: an account that was deleted and made again gets a token of its own.
func TestAnotherAccount(t *testing.T) {
	requested := 0
	i := issuer(time.Hour, &requested, account("east", "1"))
	if err := i.Pass(t.Context()); err != nil {
		t.Fatal(err)
	}
	accounts := i.Client.CoreV1().ServiceAccounts(namespace)
	if err := accounts.Delete(t.Context(), rotation.Account("east"), metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := accounts.Create(t.Context(), account("east", "2"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := i.Pass(t.Context()); err != nil {
		t.Fatal(err)
	}
	if requested != 2 || i.secret(t, "east").OwnerReferences[0].UID != "2" {
		t.Errorf("%d tokens, owner %v", requested, i.secret(t, "east").OwnerReferences)
	}
}

// TestForeignSecret: a Secret that the controller did not create is not overwritten.
func TestForeignSecret(t *testing.T) {
	requested := 0
	i := issuer(time.Hour, &requested, account("east", "1"))
	foreign := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "clusterset-member-east-token", Namespace: namespace}}
	if _, err := i.Client.CoreV1().Secrets(namespace).Create(t.Context(), foreign, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := i.Pass(t.Context()); err == nil || !strings.Contains(err.Error(), "delete it") {
		t.Errorf("got %v", err)
	}
	if len(i.secret(t, "east").Data) > 0 {
		t.Error("it was overwritten")
	}
}
