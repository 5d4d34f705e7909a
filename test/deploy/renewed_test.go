// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"

	"github.com/clusterset-dns/clusterset-dns/controller"
	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/test/audit"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/controlplanetest"
	"github.com/clusterset-dns/clusterset-dns/test/pki"
	"github.com/clusterset-dns/clusterset-dns/test/scenario"
)

// life is the shortest lifetime that an API server issues.
const life = 10 * time.Minute

// TestRenewedToken gives a reader a token of ten minutes, which its controller renews with its own rights, until the
// token's account is deleted; an open watch survives that. TestRenewToken tests when tokens are renewed.
func TestRenewedToken(t *testing.T) {
	clusters := controlplanetest.Start(t, controlplane.Options{Name: "east"}, controlplane.Options{Name: "west"})
	for _, cluster := range clusters {
		apply(t, cluster, template(t, "--set", "clusterId="+cluster.Name()+",namespace.create=true"))
	}
	east, west := clusters[0], clusters[1]
	credential, err := east.ServiceAccountKubeconfig(t.Context(), system, "clusterset-controller")
	must(t, err)
	config, err := clientcmd.RESTConfigFromKubeConfig(credential)
	must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		options := controller.DefaultOptions()
		options.Config, options.Cluster, options.Namespace, options.LeaderElection = config, "east", system, false
		options.Clock, options.Liveness.StaleAfter = scenario.NewClock(60, 0), 4*time.Hour
		ended <- controller.Run(ctx, options)
	}()
	t.Cleanup(func() { cancel(); must(t, <-ended) })
	controllerOf(t, west)
	t.Log(kubectlClusterset(t, clusters, "join east west"))

	secrets := east.Client().CoreV1().Secrets(system)
	held, err := secrets.Get(t.Context(), "member-west", metav1.GetOptions{})
	must(t, err)
	const account = member.AccountPrefix + "east"
	given, renewed := tokenOf(t, west, account), ""
	held.Data[member.KubeconfigKey], err = member.ReplaceToken(held.Data[member.KubeconfigKey], given)
	must(t, err)
	_, err = secrets.Update(t.Context(), held, metav1.UpdateOptions{})
	must(t, err)
	eventually(t, "the token is renewed", func(ctx context.Context) error {
		held, err := secrets.Get(ctx, "member-west", metav1.GetOptions{})
		if err != nil {
			return err
		}
		config, err := clientcmd.Load(held.Data[member.KubeconfigKey])
		if err != nil {
			return err
		}
		if renewed = config.AuthInfos["west"].Token; renewed == given {
			return errors.New("it has not been")
		}
		return nil
	})
	if is, _ := member.ParseToken(renewed); is.Account != account || is.Expires.Sub(is.Issued) != life {
		t.Errorf("the token is of %s, for %v", is.Account, is.Expires.Sub(is.Issued))
	}
	publish(t, west, "10.2.0.1")
	reads(t, east, "10.2.0.1")
	// The rights of a reader's account, and of the reader's controller.
	client := reading(t, west, renewed)
	_, err = client.CoreV1().Secrets(system).List(t.Context(), metav1.ListOptions{})
	refused := map[string]error{"Secrets": err}
	for _, other := range []string{"clusterset-member-north", "clusterset-controller", "clusterset-member"} {
		_, refused["a token of "+other] = pki.Token(t.Context(), client, system, other, life)
	}
	for what, err := range refused {
		if !apierrors.IsForbidden(err) {
			t.Errorf("%s: %v, want Forbidden", what, err)
		}
	}
	for name, want := range map[string]bool{"member-west": true, "another": false} {
		allowed, err := audit.Allowed(t.Context(), east, audit.Account(system, "clusterset-controller"), audit.Call("update secrets "+system+"/"+name))
		must(t, err)
		if allowed != want {
			t.Errorf("the controller may update Secret %s: %t, want %t", name, allowed, want)
		}
	}

	// Access is revoked as documented.
	published := metav1.ListOptions{LabelSelector: export.LabelService + "=web"}
	list, err := client.DiscoveryV1().EndpointSlices("").List(t.Context(), published)
	must(t, err)
	published.ResourceVersion, published.TimeoutSeconds = list.ResourceVersion, ptr.To[int64](180)
	open, err := client.DiscoveryV1().EndpointSlices("").Watch(t.Context(), published)
	must(t, err)
	deleted := time.Now()
	must(t, west.Client().CoreV1().ServiceAccounts(system).Delete(t.Context(), account, metav1.DeleteOptions{}))
	for i, token := range []string{given, renewed} {
		eventually(t, "the token is rejected", func(ctx context.Context) error {
			if err := mayRead(ctx, t, west, token); !apierrors.IsUnauthorized(err) {
				return errors.Join(errors.New("not unauthorized"), err)
			}
			return nil
		})
		t.Logf("token %d was rejected %v after the deletion", i+1, time.Since(deleted).Round(10*time.Millisecond))
	}
	publish(t, west, "10.2.0.2")
	continues := false
	for event := range open.ResultChan() {
		if slice, ok := event.Object.(*discoveryv1.EndpointSlice); ok && len(slice.Endpoints) > 0 && slice.Endpoints[0].Addresses[0] == "10.2.0.2" {
			continues = true
			open.Stop()
		}
	}
	if !continues {
		t.Error("the open watch ended")
	}
	eventually(t, "the Role of the account is gone", func(ctx context.Context) error {
		_, err := west.Client().RbacV1().Roles(system).Get(ctx, account, metav1.GetOptions{})
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("it is there: %w", err)
		}
		return nil
	})
}

// mayRead returns nil if a member serves the holder of a token.
func mayRead(ctx context.Context, t *testing.T, cluster *controlplane.Cluster, token string) error {
	_, err := reading(t, cluster, token).DiscoveryV1().EndpointSlices("").List(ctx, metav1.ListOptions{Limit: 1})
	return err
}

// reading returns a client with this token.
func reading(t *testing.T, cluster *controlplane.Cluster, token string) kubernetes.Interface {
	client, err := kubernetes.NewForConfig(&rest.Config{
		Host: cluster.URL(), BearerToken: token, TLSClientConfig: rest.TLSClientConfig{CAData: cluster.Config().CAData},
	})
	must(t, err)
	return client
}
