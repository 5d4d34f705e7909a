// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/controller/rotation"
	"github.com/clusterset-dns/clusterset-dns/controller/tokens"
	"github.com/clusterset-dns/clusterset-dns/test/clusterset"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/controlplanetest"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/programs"
)

// TestRenewedToken joins two clusters with a token of ten minutes, the least that an API server issues: the controller of
// west renews it, that of east fetches the next one, and the deletion of the ServiceAccount ends all of them.
func TestRenewedToken(t *testing.T) {
	const account = "clusterset-member-east"
	east := controlplanetest.Start(t, controlplane.Options{Name: "east", Zones: []string{}})[0]
	west := controlplanetest.Start(t, controlplane.Options{Name: "west", Zones: []string{}})[0]
	for cluster, values := range map[*controlplane.Cluster]string{
		east: "clusterId=east,controller.renewTokens=1h",
		west: "clusterId=west,controller.renewTokens=1h,tokenReaders={east}",
	} {
		run(t, template(t, "--set", values+",namespace.create=true"), kubectl(t), "--kubeconfig", kubeconfig(t, cluster),
			"apply", "--server-side", "-f", "-")
	}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To[int64](600)}}
	made, err := west.Client().CoreV1().ServiceAccounts(system).CreateToken(t.Context(), account, request,
		metav1.CreateOptions{})
	must(t, err)
	first := made.Status.Token
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Name: "member-west", Labels: map[string]string{member.ClusterLabel: "west"},
			Annotations: map[string]string{member.RankAnnotation: "3"},
		},
		Data: map[string][]byte{member.KubeconfigKey: withToken(t, west, first)},
	}
	_, err = east.Client().CoreV1().Secrets(system).Create(t.Context(), secret, metav1.CreateOptions{})
	must(t, err)

	program, err := programs.Build(t.Context(), "cmd/clusterset-controller")
	must(t, err)
	start := func(cluster *controlplane.Cluster) {
		credential, err := clusterset.WriteCredential(t.Context(), cluster, system, "clusterset-controller")
		must(t, err)
		running, err := clusterset.StartController(cluster, filepath.Join(program, "clusterset-controller"), credential,
			"--renew-tokens=1h")
		must(t, err)
		t.Cleanup(func() { must(t, running.Stop(context.Background(), time.Minute)) })
	}
	start(west)
	eventually(t, "west has issued a token", func(ctx context.Context) error {
		_, err := west.Client().CoreV1().Secrets(system).Get(ctx, account+"-token", metav1.GetOptions{})
		return err
	})
	start(east)
	current := func() string {
		held, err := east.Client().CoreV1().Secrets(system).Get(t.Context(), "member-west", metav1.GetOptions{})
		must(t, err)
		if held.Annotations[member.RankAnnotation] != "3" {
			t.Errorf("annotations %v", held.Annotations)
		}
		config, err := clientcmd.Load(held.Data[member.KubeconfigKey])
		must(t, err)
		return config.AuthInfos["member"].Token
	}
	var second string
	eventually(t, "east has a token of an hour", func(context.Context) error {
		second = current()
		if is, _ := rotation.Parse(second); is.Expires.Sub(is.Issued) != time.Hour {
			return fmt.Errorf("it lives for %v", is.Expires.Sub(is.Issued))
		}
		return nil
	})
	mayRead := func(token string) error {
		client := reading(t, west, token)
		_, err := client.DiscoveryV1().EndpointSlices("").List(t.Context(), metav1.ListOptions{Limit: 1})
		return err
	}
	must(t, mayRead(second))

	// What the account may not.
	client := reading(t, west, second).CoreV1()
	if _, err := client.Secrets(system).Get(t.Context(), account+"-token", metav1.GetOptions{}); err != nil {
		t.Errorf("its own token: %v", err)
	}
	_, other := client.Secrets(system).Get(t.Context(), "clusterset-member-north-token", metav1.GetOptions{})
	_, all := client.Secrets(system).List(t.Context(), metav1.ListOptions{})
	_, issued := client.ServiceAccounts(system).CreateToken(t.Context(), account, request, metav1.CreateOptions{})
	for what, err := range map[string]error{"another token": other, "all Secrets": all, "a token of its choice": issued} {
		if !apierrors.IsForbidden(err) {
			t.Errorf("%s: %v, want Forbidden", what, err)
		}
	}

	// Half an hour later, on a clock of its own.
	later := clocktesting.NewFakeClock(time.Now().Add(31 * time.Minute))
	time.Sleep(time.Second) //nolint:forbidigo // tokens count seconds
	issuer := &tokens.Issuer{Client: west.Client(), Namespace: system, Lifetime: time.Hour, Clock: later}
	must(t, issuer.Pass(t.Context()))
	held, err := west.Client().CoreV1().Secrets(system).Get(t.Context(), account+"-token", metav1.GetOptions{})
	must(t, err)
	third := string(held.Data[rotation.TokenKey])
	if third == second {
		t.Error("the token was not renewed at half of its life")
	}
	for _, token := range []string{first, second, third} {
		must(t, mayRead(token))
	}

	// Revoked as documented. An open watch goes on.
	open, err := reading(t, west, third).DiscoveryV1().EndpointSlices("default").Watch(t.Context(), metav1.ListOptions{
		TimeoutSeconds: ptr.To[int64](3600), LabelSelector: "test=open-watch",
	})
	must(t, err)
	defer open.Stop()
	began := time.Now()
	must(t, west.Client().CoreV1().ServiceAccounts(system).Delete(t.Context(), account, metav1.DeleteOptions{}))
	for i, token := range []string{first, second, third} {
		eventually(t, "the token is rejected", func(context.Context) error {
			if err := mayRead(token); !apierrors.IsUnauthorized(err) {
				return errors.Join(errors.New("not unauthorized"), err)
			}
			return nil
		})
		t.Logf("token %d was rejected %v after the deletion", i+1, time.Since(began).Round(10*time.Millisecond))
	}
	_, err = west.Client().DiscoveryV1().EndpointSlices("default").Create(t.Context(), &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: "open-watch", Labels: map[string]string{"test": "open-watch"}},
		AddressType: discoveryv1.AddressTypeIPv4,
	}, metav1.CreateOptions{})
	must(t, err)
	select {
	case event := <-open.ResultChan():
		t.Logf("an open watch delivered %s %v after the deletion", event.Type, time.Since(began).Round(10*time.Millisecond))
	case <-time.After(10 * time.Second):
		t.Log("an open watch delivers nothing any more")
	}
	// The connections of the reader are made anew. Without that, its watches end after 10 minutes at most.
	again := time.Now()
	must(t, west.APIServer().Stop(t.Context()))
	must(t, west.APIServer().Start(t.Context()))
	eventually(t, "east reports it", func(ctx context.Context) error {
		events, err := east.Client().CoreV1().Events(system).List(ctx, metav1.ListOptions{
			FieldSelector: "involvedObject.name=member-west,reason=MemberUnreachable",
		})
		if err != nil {
			return err
		}
		for i := range events.Items {
			if bytes.Contains([]byte(events.Items[i].Message), []byte("nauthorized")) {
				return nil
			}
		}
		return fmt.Errorf("%d Events", len(events.Items))
	})
	t.Logf("reported within %v of a restart of the API server of west", time.Since(again).Round(10*time.Millisecond))
}

// withToken returns a kubeconfig with which a controller reads a cluster.
func withToken(t *testing.T, cluster *controlplane.Cluster, token string) []byte {
	t.Helper()
	made := clientcmdapi.NewConfig()
	made.Clusters["member"] = &clientcmdapi.Cluster{Server: cluster.URL(), CertificateAuthorityData: cluster.Config().CAData}
	made.AuthInfos["member"] = &clientcmdapi.AuthInfo{Token: token}
	made.Contexts["member"] = &clientcmdapi.Context{Cluster: "member", AuthInfo: "member", Namespace: system}
	made.CurrentContext = "member"
	text, err := clientcmd.Write(*made)
	must(t, err)
	return text
}

// reading returns a client with a token.
func reading(t *testing.T, cluster *controlplane.Cluster, token string) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(&rest.Config{
		Host: cluster.URL(), BearerToken: token, TLSClientConfig: rest.TLSClientConfig{CAData: cluster.Config().CAData},
	})
	must(t, err)
	return client
}
