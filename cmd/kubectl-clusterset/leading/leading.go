// SPDX-License-Identifier: Apache-2.0

// Package leading asks the leading controllers of clusters what they know.
package leading

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/forward"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/names"
	"github.com/clusterset-dns/clusterset-dns/controller/state"
)

const (
	// timeout bounds a question with its connection.
	timeout = 30 * time.Second
	// port is that of the metrics in the Deployment.
	port = 8080
	// maxAnswer bounds the answer, in bytes.
	maxAnswer = 256 << 20
)

// Status returns the state of a cluster. address is that of the controller; empty means that of the leading pod.
func Status(ctx context.Context, c *cluster.Cluster, address string) (*state.Cluster, error) {
	out := &state.Cluster{}
	return out, ask(ctx, c, address, state.PathStatus, out, &out.Version)
}

// Explain returns the explanation of a service, as namespace/name.
func Explain(ctx context.Context, c *cluster.Cluster, address, service string) (*state.Explanation, error) {
	out := &state.Explanation{}
	return out, ask(ctx, c, address, state.PathExplain+"?service="+url.QueryEscape(service), out, &out.Version)
}

func ask(ctx context.Context, c *cluster.Cluster, address, question string, document any, version *string) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if address == "" {
		pod, err := leadingPod(ctx, c)
		if err != nil {
			return err
		}
		forwarded, stop, err := forward.Open(ctx, c, c.Namespace, pod, port)
		if err != nil {
			return fmt.Errorf("%w: the user needs the right to create pods/portforward in namespace %s, which Role "+
				"clusterset-viewer has", err, c.Namespace)
		}
		defer stop()
		address = forwarded
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+question, http.NoBody)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("ask the controller: %w", err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("ask the controller: %w", err)
	}
	switch standby := (state.Standby{}); {
	case response.StatusCode == http.StatusServiceUnavailable && json.Unmarshal(body, &standby) == nil:
		return errors.New(standby.Reason + ": try again")
	case response.StatusCode == http.StatusServiceUnavailable:
		return errors.New(strings.TrimSpace(string(body)))
	case response.StatusCode == http.StatusOK && json.Unmarshal(body, document) == nil && *version == state.Version:
		return nil
	}
	path, _, _ := strings.Cut(question, "?")
	return fmt.Errorf("the controller does not know the question %s (%s): use the kubectl-clusterset of the controller's version",
		path, response.Status)
}

// leadingPod returns the name of the pod that leads, or of the only one there is.
func leadingPod(ctx context.Context, c *cluster.Cluster) (string, error) {
	pods, err := c.Kube.CoreV1().Pods(c.Namespace).List(ctx, metav1.ListOptions{
		LabelSelector: "app.kubernetes.io/component=controller",
	})
	if err != nil {
		return "", err
	}
	lease, err := c.Kube.CoordinationV1().Leases(c.Namespace).Get(ctx, names.Leader, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return "", err
	}
	name, _, _ := strings.Cut(ptr.Deref(lease.Spec.HolderIdentity, ""), "_")
	for i := range pods.Items {
		if pods.Items[i].Name == name || len(pods.Items) == 1 {
			return pods.Items[i].Name, nil
		}
	}
	return "", fmt.Errorf("no pod of clusterset-controller leads in namespace %s: see `kubectl -n %s get pods`, set its namespace "+
		"with --system-namespace, or its address with --controller", c.Namespace, c.Namespace)
}
