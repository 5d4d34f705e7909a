// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"github.com/clusterset-dns/clusterset-dns/test/controlplane"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/controlplanetest"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/link"
)

// get reads the ConfigMap "memory".
func get(ctx context.Context, client kubernetes.Interface) (string, error) {
	found, err := client.CoreV1().ConfigMaps("default").Get(ctx, "memory", metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	return found.Data["key"], nil
}

// answers waits until the API server answers, with the data of before.
func answers(t *testing.T, client kubernetes.Interface) {
	t.Helper()
	eventually(t, "the data of before", func(ctx context.Context) error {
		value, err := get(ctx, client)
		if err == nil && value != "value" {
			err = fmt.Errorf("it is %q", value)
		}
		return err
	})
}

// hangs checks that a request is neither answered nor refused.
func hangs(t *testing.T, client kubernetes.Interface) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := get(ctx, client); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a request to a server that should be silent: %v", err)
	}
}

// TestFaults breaks a cluster of its own in every way there is, and mends it.
func TestFaults(t *testing.T) {
	t.Parallel()
	cluster := controlplanetest.Start(t, controlplane.Options{Name: "broken", Zones: []string{}})[0]
	memory := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "memory"}, Data: map[string]string{"key": "value"}}
	if _, err := cluster.Client().CoreV1().ConfigMaps("default").Create(t.Context(), memory, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	start := func(component *controlplane.Component) {
		t.Helper()
		if err := component.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
	}

	t.Run("freeze", func(t *testing.T) {
		if err := cluster.APIServer().Freeze(); err != nil {
			t.Fatal(err)
		}
		hangs(t, cluster.Client())
		if err := cluster.APIServer().Thaw(); err != nil {
			t.Fatal(err)
		}
		answers(t, cluster.Client())
	})
	t.Run("kill", func(t *testing.T) {
		url, before := cluster.URL(), cluster.APIServer().PID()
		if err := cluster.APIServer().Kill(); err != nil {
			t.Fatal(err)
		}
		if _, err := get(t.Context(), cluster.Client()); err == nil || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a request to a killed server: %v", err)
		}
		start(cluster.APIServer())
		answers(t, cluster.Client())
		if cluster.URL() != url || cluster.APIServer().PID() == before {
			t.Errorf("the same process %d, or another address than %s: %s", before, url, cluster.URL())
		}
	})
	t.Run("stop", func(t *testing.T) {
		if err := cluster.APIServer().Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		if cluster.APIServer().Running() {
			t.Error("the API server runs after Stop")
		}
		start(cluster.APIServer())
		answers(t, cluster.Client())
	})
	t.Run("etcd", func(t *testing.T) {
		if err := cluster.Etcd().Kill(); err != nil {
			t.Fatal(err)
		}
		start(cluster.Etcd())
		answers(t, cluster.Client())
	})
	t.Run("controllers", func(t *testing.T) {
		if err := cluster.Controllers().Kill(); err != nil {
			t.Fatal(err)
		}
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "without"}}
		if _, err := cluster.Client().CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		start(cluster.Controllers())
		eventually(t, "the service account of a namespace", func(ctx context.Context) error {
			_, err := cluster.Client().CoreV1().ServiceAccounts("without").Get(ctx, "default", metav1.GetOptions{})
			return err
		})
	})
	if err := cluster.Err(); err != nil {
		t.Errorf("what was told to end counts as an error: %v", err)
	}
}

// A way that is cut hangs, and the others do not.
func TestRemoteIsCutOff(t *testing.T) {
	t.Parallel()
	cluster := clusters(t)[1] // nobody else goes these ways
	memory := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "memory"}, Data: map[string]string{"key": "value"}}
	created, err := cluster.Client().CoreV1().ConfigMaps("default").Create(t.Context(), memory, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := cluster.Client().CoreV1().ConfigMaps("default").Delete(t.Context(), memory.Name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	}()
	clients := map[string]kubernetes.Interface{}
	remotes := map[string]*controlplane.Remote{}
	for _, from := range []string{"south", "north"} {
		if remotes[from], err = cluster.Remote(from); err != nil {
			t.Fatal(err)
		}
		if clients[from], err = kubernetes.NewForConfig(remotes[from].Config()); err != nil {
			t.Fatal(err)
		}
		answers(t, clients[from])
	}
	if again, err := cluster.Remote("south"); err != nil || again != remotes["south"] {
		t.Errorf("the way from south is made anew: %v", err)
	}

	// A watch over a way that is cut goes on once it is whole, where it was.
	watcher, err := clients["south"].CoreV1().ConfigMaps("default").Watch(t.Context(), metav1.ListOptions{
		FieldSelector: "metadata.name=memory", ResourceVersion: created.ResourceVersion,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer watcher.Stop()

	remotes["south"].CutOff(link.FromServer)
	created.Labels = map[string]string{"changed": "while-cut-off"}
	if _, err := cluster.Client().CoreV1().ConfigMaps("default").Update(t.Context(), created, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	hangs(t, clients["south"])
	answers(t, clients["north"])
	answers(t, cluster.Client())
	select {
	case event := <-watcher.ResultChan():
		t.Errorf("an event came over a cut link: %v", event)
	default:
	}
	remotes["south"].Reconnect()
	select {
	case event := <-watcher.ResultChan():
		if event.Type != watch.Modified {
			t.Errorf("the watch goes on with %v", event)
		}
	case <-time.After(20 * time.Second):
		t.Error("the watch does not go on after the cut")
	}
	answers(t, clients["south"])

	cluster.CutOff(link.Both)
	hangs(t, clients["south"])
	hangs(t, clients["north"])
	answers(t, cluster.Client())
	cluster.Reconnect()
	answers(t, clients["south"])
	answers(t, clients["north"])
}

// The error of a component that ends by itself quotes its log.
func TestStartFailsWithTheLog(t *testing.T) {
	t.Parallel()
	_, err := controlplane.Start(t.Context(), controlplane.Options{Name: "wrong", APIServerArgs: []string{"--no-such-flag"}})
	if err == nil {
		t.Fatal("a cluster with a wrong flag starts")
	}
	for _, want := range []string{"start control plane wrong", "kube-apiserver", "unknown flag: --no-such-flag"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not say %q: %v", want, err)
		}
	}
}
