// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"context"
	"crypto/ecdsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/clusterset-dns/clusterset-dns/controller/member"
)

// silencesOfTheCredential: east cannot read west any more, and west says so.
var silencesOfTheCredential = []silence{
	{
		name:  "its credential expires and is rotated",
		begin: expire, heal: rotate, pairs: toEast,
	},
	{
		name:  "its credential is wrong",
		begin: func(b *bed) { b.replace(pair{b.east, b.west}, b.withToken("wrong")) },
		heal:  rotate, pairs: toEast,
	},
	{
		name: "its credential loses its rights",
		begin: func(b *bed) {
			// North goes on with the watches that it has.
			b.revoke(b.west, "clusterset-member")
			b.refused(apierrors.IsForbidden)
			b.ways[pair{b.east, b.west}].Reset()
		},
		heal: func(b *bed) { b.grant(b.west) }, pairs: toEast,
	},
	{
		name: "its Secret leads to a server that cannot prove who it is",
		begin: func(b *bed) {
			p := pair{b.east, b.west}
			b.replace(p, []byte(strings.ReplaceAll(string(b.credential(p)), b.ways[p].URL(), b.north.URL())))
		},
		heal: rotate, pairs: toEast,
	},
}

// rotate gives east a new credential for west.
func rotate(b *bed) { b.replace(pair{b.east, b.west}, b.credential(pair{b.east, b.west})) }

// withToken is the kubeconfig by which east reads west, with another token.
func (b *bed) withToken(token string) []byte {
	b.Helper()
	config, err := clientcmd.Load(b.credential(pair{b.east, b.west}))
	b.must(err)
	for _, user := range config.AuthInfos {
		user.Token = token
	}
	text, err := clientcmd.Write(*config)
	b.must(err)
	return text
}

// refused waits until west refuses the credential that east has for it.
func (b *bed) refused(why func(error) bool) {
	b.Helper()
	secret, err := b.east.CoreV1().Secrets(system).Get(b.Context(), pair{b.east, b.west}.secret(), metav1.GetOptions{})
	b.must(err)
	config, err := clientcmd.RESTConfigFromKubeConfig(secret.Data[member.KubeconfigKey])
	b.must(err)
	client, err := kubernetes.NewForConfig(config)
	b.must(err)
	b.eventually("refusal of the credential", func(ctx context.Context) error {
		_, err := client.DiscoveryV1().EndpointSlices("").List(ctx, metav1.ListOptions{Limit: 1})
		if why(err) {
			return nil
		}
		return errors.Join(errors.New("it is not refused"), err)
	})
}

// leeway is how long the API server accepts a token after its end.
const leeway = time.Minute

// expire gives east a credential that is good, and waits until it is not. The
// API server takes no shorter request than ten minutes, so its key signs here.
func expire(b *bed) {
	account, err := b.west.CoreV1().ServiceAccounts(system).Get(b.Context(), "clusterset-member", metav1.GetOptions{})
	b.must(err)
	now := time.Now()
	const issuer = "https://kubernetes.default.svc.cluster.local"
	token, err := jwt.NewWithClaims(jwt.SigningMethodES256, jwt.MapClaims{
		"iss": issuer, "aud": []string{issuer},
		"sub": "system:serviceaccount:" + system + ":clusterset-member",
		"nbf": now.Add(-time.Hour).Unix(), "iat": now.Add(-time.Hour).Unix(), "exp": now.Add(5*time.Second - leeway).Unix(),
		"kubernetes.io": map[string]any{
			"namespace":      system,
			"serviceaccount": map[string]string{"name": account.Name, "uid": string(account.UID)},
		},
	}).SignedString(b.signingKey(b.west))
	b.must(err)
	p := pair{b.east, b.west}
	b.replace(p, b.withToken(token))
	b.reads(p)
	b.refused(apierrors.IsUnauthorized)
	b.ways[p].Reset()
}

// signingKey is the one that a cluster signs tokens with.
func (b *bed) signingKey(c *cluster) *ecdsa.PrivateKey {
	b.Helper()
	text, err := os.ReadFile(filepath.Join(c.Directory(), "serviceaccount.key"))
	b.must(err)
	block, _ := pem.Decode(text)
	if block == nil {
		b.Fatal("the key for tokens is no PEM")
	}
	key, err := x509.ParseECPrivateKey(block.Bytes)
	b.must(err)
	return key
}

// event waits for an Event on the Secret by which a reader has its member, that
// says all those words.
func (b *bed) event(p pair, reason string, words ...string) {
	b.Helper()
	b.eventually("Event "+reason, func(ctx context.Context) error {
		secret, err := p.reader.CoreV1().Secrets(system).Get(ctx, p.secret(), metav1.GetOptions{})
		if err != nil {
			return err
		}
		events, err := p.reader.CoreV1().Events(system).List(ctx, metav1.ListOptions{
			FieldSelector: "reason=" + reason + ",involvedObject.uid=" + string(secret.UID),
		})
		if err != nil {
			return err
		}
		for _, event := range events.Items {
			if !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(event.Message, word) }) {
				return nil
			}
		}
		return fmt.Errorf("there is none among %d", len(events.Items))
	})
}
