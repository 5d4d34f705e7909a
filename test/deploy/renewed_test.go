// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"

	"github.com/clusterset-dns/clusterset-dns/controller"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/test/clusterset"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/controlplanetest"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/programs"
	"github.com/clusterset-dns/clusterset-dns/test/scenario"
)

// life is the least lifetime that an API server issues. The clocks of the readers make ten seconds of it.
const (
	life = 10 * time.Minute
	rate = 60
)

// TestRenewedToken joins west with two readers, whose tokens live for ten minutes: each renews its own, also after west was
// away for most of the life, until the account of one is deleted.
func TestRenewedToken(t *testing.T) {
	planes := map[string]*controlplane.Cluster{}
	merged := clientcmdapi.NewConfig()
	for _, name := range []string{"east", "north", "west"} {
		cluster := controlplanetest.Start(t, controlplane.Options{Name: name, Zones: []string{}})[0]
		planes[name] = cluster
		config, err := clientcmd.LoadFromFile(kubeconfig(t, cluster))
		must(t, err)
		used := config.Contexts[config.CurrentContext]
		merged.Clusters[name], merged.AuthInfos[name] = config.Clusters[used.Cluster], config.AuthInfos[used.AuthInfo]
		merged.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
		run(t, template(t, "--set", "clusterId="+name+",namespace.create=true"), kubectl(t), "--kubeconfig",
			kubeconfig(t, cluster), "apply", "--server-side", "-f", "-")
	}
	west := planes["west"]
	type reader struct {
		clock interface{ Now() time.Time }
		stop  func()
	}
	readers := map[string]reader{}
	// start starts the controller of a reader, whose clock begins now.
	start := func(name string) {
		credential, err := clusterset.WriteCredential(t.Context(), planes[name], system, "clusterset-controller")
		must(t, err)
		config, err := clientcmd.BuildConfigFromFlags("", string(credential))
		must(t, err)
		clock := scenario.NewClock(rate, 0)
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() {
			ended <- controller.Run(ctx, controller.Options{
				Config: config, Cluster: name, Namespace: system, Clock: clock, StaleAfter: 4 * time.Hour,
			})
		}()
		stop := sync.OnceFunc(func() { cancel(); must(t, <-ended) })
		t.Cleanup(stop)
		readers[name] = reader{clock, stop}
	}
	start("east")
	start("north")
	built, err := programs.Build(t.Context(), "cmd/clusterset-controller")
	must(t, err)
	credential, err := clusterset.WriteCredential(t.Context(), west, system, "clusterset-controller")
	must(t, err)
	running, err := clusterset.StartController(west, filepath.Join(built, "clusterset-controller"), credential)
	must(t, err)
	stopWest := func() { must(t, running.Stop(context.Background(), time.Minute)) }
	t.Cleanup(func() { stopWest() })
	program, err := programs.Build(t.Context(), "cmd/kubectl-clusterset")
	must(t, err)
	contexts := filepath.Join(t.TempDir(), "kubeconfig")
	must(t, clientcmd.WriteToFile(*merged, contexts))
	t.Log(run(t, "", filepath.Join(program, "kubectl-clusterset"), "join", "east", "north", "west", "--kubeconfig", contexts))

	held := func(reader string) string {
		secret, err := planes[reader].Client().CoreV1().Secrets(system).Get(t.Context(), "member-west", metav1.GetOptions{})
		must(t, err)
		config, err := clientcmd.Load(secret.Data[member.KubeconfigKey])
		must(t, err)
		return config.AuthInfos["west"].Token
	}
	// give has a reader use a new token with a short life, and returns it.
	give := func(reader string) string {
		made, err := west.Client().CoreV1().ServiceAccounts(system).CreateToken(t.Context(), member.AccountOf(reader),
			&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
				ExpirationSeconds: ptr.To(int64(life / time.Second)),
			}}, metav1.CreateOptions{})
		must(t, err)
		secrets := planes[reader].Client().CoreV1().Secrets(system)
		secret, err := secrets.Get(t.Context(), "member-west", metav1.GetOptions{})
		must(t, err)
		secret.Data[member.KubeconfigKey], err = member.ReplaceToken(secret.Data[member.KubeconfigKey], made.Status.Token)
		must(t, err)
		_, err = secrets.Update(t.Context(), secret, metav1.UpdateOptions{})
		must(t, err)
		return made.Status.Token
	}
	mayRead := func(token string) error {
		_, err := reading(t, west, token).DiscoveryV1().EndpointSlices("").List(t.Context(), metav1.ListOptions{Limit: 1})
		return err
	}
	// renewed waits for the token after one.
	renewed := func(reader, before string) string {
		t.Helper()
		was, _ := member.ParseToken(before)
		var after string
		eventually(t, reader+" renews its token", func(context.Context) error {
			if after = held(reader); after == before {
				return errors.New("it has not")
			}
			return nil
		})
		is, _ := member.ParseToken(after)
		if is.Account != member.AccountOf(reader) || is.Expires.Sub(is.Issued) != was.Expires.Sub(was.Issued) {
			t.Errorf("%s has a token of %s for %v", reader, is.Account, is.Expires.Sub(is.Issued))
		}
		must(t, mayRead(after))
		return after
	}
	imported := func(reader, service string) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := planes[reader].Dynamic().Resource(schema.GroupVersionResource{
				Group: "multicluster.x-k8s.io", Version: "v1beta1", Resource: "serviceimports",
			}).Namespace("default").Get(ctx, service, metav1.GetOptions{})
			return err
		}
	}
	export := func(service string) {
		apply(t, west, `{apiVersion: v1, kind: Service, metadata: {name: `+service+`, namespace: default}, spec: {ports: [{port: 80}]}}
---
{apiVersion: multicluster.x-k8s.io/v1beta1, kind: ServiceExport, metadata: {name: `+service+`, namespace: default}}`)
	}
	export("first")

	// Each at half of the life.
	for name := range readers {
		readers[name].stop()
		token := give(name)
		is, _ := member.ParseToken(token)
		start(name)
		renewed(name, token)
		passed := readers[name].clock.Now().Sub(is.Issued)
		if t.Logf("%s renewed a token of %v after %v of its clock", name, life, passed.Round(time.Second)); passed < life/2 {
			t.Error("that is before the half of its life")
		}
	}
	// What the account of a reader may do, and what the controller of the reader may.
	client := reading(t, west, held("east")).CoreV1()
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To[int64](600)}}
	_, err = client.Secrets(system).List(t.Context(), metav1.ListOptions{})
	refused := map[string]error{"Secrets": err}
	for _, account := range []string{"clusterset-member-north", "clusterset-controller", "clusterset-member"} {
		_, refused["a token of "+account] = client.ServiceAccounts(system).CreateToken(t.Context(), account, request, metav1.CreateOptions{})
	}
	for what, err := range refused {
		if !apierrors.IsForbidden(err) {
			t.Errorf("%s: %v, want Forbidden", what, err)
		}
	}
	for name, want := range map[string]bool{"member-west": true, "member-north": true, "another": false} {
		review, err := planes["east"].Client().AuthorizationV1().SubjectAccessReviews().Create(t.Context(),
			&authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
				User: "system:serviceaccount:" + system + ":clusterset-controller",
				ResourceAttributes: &authorizationv1.ResourceAttributes{
					Namespace: system, Resource: "secrets", Verb: "update", Name: name,
				},
			}}, metav1.CreateOptions{})
		must(t, err)
		if review.Status.Allowed != want {
			t.Errorf("the controller may update Secret %s: %t, want %t", name, review.Status.Allowed, want)
		}
	}

	// West is away for most of the life of a token. Its controller ends, as it cannot keep its Lease.
	stopWest()
	must(t, west.APIServer().Stop(t.Context()))
	token, began := held("east"), readers["east"].clock.Now()
	eventually(t, "most of the life has passed", func(context.Context) error {
		if passed := readers["east"].clock.Now().Sub(began); passed < life*9/10 {
			return fmt.Errorf("%v have passed", passed)
		}
		return nil
	})
	if held("east") != token {
		t.Error("the token was renewed while west was away")
	}
	must(t, west.APIServer().Start(t.Context()))
	running, err = clusterset.StartController(west, filepath.Join(built, "clusterset-controller"), credential)
	must(t, err)
	renewed("east", token)
	export("second")
	eventually(t, "east imports what west exports", imported("east", "second"))

	// Revoked as documented: the tokens of one reader, and what it imported stays.
	tokens := []string{token, held("east")}
	deleted := time.Now()
	must(t, west.Client().CoreV1().ServiceAccounts(system).Delete(t.Context(), member.AccountOf("east"), metav1.DeleteOptions{}))
	for i, token := range append(tokens, held("east")) {
		eventually(t, "the token is rejected", func(context.Context) error {
			if err := mayRead(token); !apierrors.IsUnauthorized(err) {
				return errors.Join(errors.New("not unauthorized"), err)
			}
			return nil
		})
		t.Logf("token %d was rejected %v after the deletion", i+1, time.Since(deleted).Round(10*time.Millisecond))
	}
	// The connections of the readers are made anew. Without that, their watches end after 10 minutes at most.
	again := time.Now()
	must(t, west.APIServer().Stop(t.Context()))
	must(t, west.APIServer().Start(t.Context()))
	eventually(t, "east reports it", func(ctx context.Context) error {
		events, err := planes["east"].Client().CoreV1().Events(system).List(ctx, metav1.ListOptions{
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
	export("third")
	eventually(t, "north imports what west exports", imported("north", "third"))
	for _, service := range []string{"first", "second"} {
		must(t, imported("east", service)(t.Context()))
	}
	eventually(t, "the Role of the account is gone", func(ctx context.Context) error {
		_, err := west.Client().RbacV1().Roles(system).Get(ctx, member.AccountOf("east"), metav1.GetOptions{})
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("it is there: %w", err)
		}
		return nil
	})
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
