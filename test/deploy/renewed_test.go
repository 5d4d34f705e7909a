// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/clusterset-dns/clusterset-dns/controller"
	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/liveness"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/test/audit"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane"
	"github.com/clusterset-dns/clusterset-dns/test/pki"
	"github.com/clusterset-dns/clusterset-dns/test/scenario"
)

// life is the shortest lifetime that an API server issues. For the readers' clocks, it is ten seconds of real time.
const (
	life = 10 * time.Minute
	rate = 60
)

// TestRenewedToken joins west with two readers with tokens of ten minutes. Each reader renews its token with its own
// rights, until the account of one is deleted; an open watch survives that. The simulation tests the effect on imports.
func TestRenewedToken(t *testing.T) {
	clusters := planes(t, "east", "north", "west")
	east, west := clusters[0], clusters[2]
	named := map[string]*controlplane.Cluster{"east": east, "north": clusters[1]}
	type reader struct {
		clock interface{ Now() time.Time }
		stop  func()
	}
	readers := map[string]reader{}
	// start starts the controller of a reader, with a clock that begins now.
	start := func(name string) {
		credential, err := named[name].ServiceAccountKubeconfig(t.Context(), system, "clusterset-controller")
		must(t, err)
		config, err := clientcmd.RESTConfigFromKubeConfig(credential)
		must(t, err)
		clock := scenario.NewClock(rate, 0)
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() {
			ended <- controller.Run(ctx, controller.Options{
				Config: config, Cluster: name, Namespace: system, Clock: clock, Liveness: liveness.Limits{StaleAfter: 4 * time.Hour},
			})
		}()
		stop := sync.OnceFunc(func() { cancel(); must(t, <-ended) })
		t.Cleanup(stop)
		readers[name] = reader{clock, stop}
	}
	start("east")
	start("north")
	controllerOf(t, west)
	t.Log(shellOf(t, clusters...)("kubectl clusterset join east north west"))

	held := func(reader string) string {
		secret, err := named[reader].Client().CoreV1().Secrets(system).Get(t.Context(), "member-west", metav1.GetOptions{})
		must(t, err)
		config, err := clientcmd.Load(secret.Data[member.KubeconfigKey])
		must(t, err)
		return config.AuthInfos["west"].Token
	}
	// give stores a new token with a short lifetime in a reader's Secret, and returns it.
	give := func(reader string) string {
		token := tokenOf(t, west, member.AccountPrefix+reader)
		secrets := named[reader].Client().CoreV1().Secrets(system)
		secret, err := secrets.Get(t.Context(), "member-west", metav1.GetOptions{})
		must(t, err)
		secret.Data[member.KubeconfigKey], err = member.ReplaceToken(secret.Data[member.KubeconfigKey], token)
		must(t, err)
		_, err = secrets.Update(t.Context(), secret, metav1.UpdateOptions{})
		must(t, err)
		return token
	}
	var tokens []string // tokens of east
	// Each token is renewed at half of its lifetime.
	for name := range readers {
		readers[name].stop()
		before, after := give(name), ""
		was, _ := member.ParseToken(before)
		start(name)
		eventually(t, name+" renews its token", func(context.Context) error {
			if after = held(name); after == before {
				return errors.New("it has not")
			}
			return nil
		})
		passed := readers[name].clock.Now().Sub(was.Issued)
		is, _ := member.ParseToken(after)
		if is.Account != member.AccountPrefix+name || is.Expires.Sub(is.Issued) != was.Expires.Sub(was.Issued) {
			t.Errorf("%s has a token of %s for %v", name, is.Account, is.Expires.Sub(is.Issued))
		}
		must(t, mayRead(t.Context(), t, west, after))
		if name == "east" {
			tokens = append(tokens, before, after)
		}
		if t.Logf("%s renewed a token of %v after %v of its clock", name, life, passed.Round(time.Second)); passed < life/2 {
			t.Error("that is before the half of its life")
		}
	}
	publish(t, west, "10.2.0.1")
	reads(t, "with renewed tokens", east, fresh, "10.2.0.1")
	// The rights of a reader's account, and of the reader's controller.
	client := reading(t, west, held("east"))
	_, err := client.CoreV1().Secrets(system).List(t.Context(), metav1.ListOptions{})
	refused := map[string]error{"Secrets": err}
	for _, account := range []string{"clusterset-member-north", "clusterset-controller", "clusterset-member"} {
		_, refused["a token of "+account] = pki.Token(t.Context(), client, system, account, life)
	}
	for what, err := range refused {
		if !apierrors.IsForbidden(err) {
			t.Errorf("%s: %v, want Forbidden", what, err)
		}
	}
	for name, want := range map[string]bool{"member-west": true, "member-north": true, "another": false} {
		allowed, err := audit.Allowed(t.Context(), east, audit.Account(system, "clusterset-controller"), audit.Call("update secrets "+system+"/"+name))
		must(t, err)
		if allowed != want {
			t.Errorf("the controller may update Secret %s: %t, want %t", name, allowed, want)
		}
	}

	// Access is revoked as documented.
	tokens = append(tokens, held("east"))
	published := metav1.ListOptions{LabelSelector: export.LabelService + "=web"}
	list, err := client.DiscoveryV1().EndpointSlices("").List(t.Context(), published)
	must(t, err)
	published.ResourceVersion = list.ResourceVersion
	open, err := reading(t, west, held("east")).DiscoveryV1().EndpointSlices("").Watch(t.Context(), published)
	must(t, err)
	defer open.Stop()
	deleted := time.Now()
	must(t, west.Client().CoreV1().ServiceAccounts(system).Delete(t.Context(), member.AccountPrefix+"east", metav1.DeleteOptions{}))
	for i, token := range tokens {
		eventually(t, "the token is rejected", func(ctx context.Context) error {
			if err := mayRead(ctx, t, west, token); !apierrors.IsUnauthorized(err) {
				return errors.Join(errors.New("not unauthorized"), err)
			}
			return nil
		})
		t.Logf("token %d was rejected %v after the deletion", i+1, time.Since(deleted).Round(10*time.Millisecond))
	}
	publish(t, west, "10.2.0.2")
	eventually(t, "the open watch continues", func(ctx context.Context) error {
		select {
		case event := <-open.ResultChan():
			slice, ok := event.Object.(*discoveryv1.EndpointSlice)
			if !ok {
				t.Fatalf("it ended: %v", event)
			}
			if len(slice.Endpoints) == 0 || slice.Endpoints[0].Addresses[0] != "10.2.0.2" {
				return errors.New("the event is an older one")
			}
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	must(t, mayRead(t.Context(), t, west, held("north")))
	eventually(t, "the Role of the account is gone", func(ctx context.Context) error {
		_, err := west.Client().RbacV1().Roles(system).Get(ctx, member.AccountPrefix+"east", metav1.GetOptions{})
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
