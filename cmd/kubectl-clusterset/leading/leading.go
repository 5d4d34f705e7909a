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
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
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
	// maxAnswer bounds the answer, in bytes.
	maxAnswer = 256 << 20
	// bindPort is that of the default of --bind-address.
	bindPort = 8080
)

// errStandby is the answer of a replica that does not lead.
var errStandby = errors.New("no replica of the controller leads: try again")

// Status returns the state of a cluster, or nil along with an error. address is that of the controller; empty means that of
// the leading pod.
func Status(ctx context.Context, c *cluster.Cluster, address string) (*state.Cluster, error) {
	out := &state.Cluster{}
	if err := ask(ctx, c, address, state.PathStatus, out, &out.Version); err != nil {
		return nil, err
	}
	return out, nil
}

// Explain returns the explanation of a service, as namespace/name.
func Explain(ctx context.Context, c *cluster.Cluster, address, service string) (*state.Explanation, error) {
	out := &state.Explanation{}
	return out, ask(ctx, c, address, state.PathExplain+"?service="+url.QueryEscape(service), out, &out.Version)
}

func ask(ctx context.Context, c *cluster.Cluster, address, question string, document any, version *string) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if address != "" {
		return get(ctx, address, question, document, version)
	}
	pods, err := replicas(ctx, c)
	for i := 0; i < len(pods) && (i == 0 || errors.Is(err, errStandby)); i++ {
		forwarded, stop, failed := forward.Open(ctx, c, c.Namespace, pods[i].Name, forward.PortOf(&pods[i], "metrics", bindPort))
		if failed != nil {
			return fmt.Errorf("%w: if that is forbidden, bind the Role clusterset-viewer of namespace %s", failed, c.Namespace)
		}
		err = get(ctx, forwarded, question, document, version)
		stop()
	}
	return err
}

func get(ctx context.Context, address, question string, document any, version *string) error {
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
	switch response.StatusCode {
	case http.StatusOK:
		if json.Unmarshal(body, document) == nil && *version == state.Version {
			return nil
		}
	case http.StatusServiceUnavailable:
		if json.Unmarshal(body, &state.Standby{}) == nil {
			return errStandby
		}
		return errors.New(strings.TrimSpace(string(body)))
	}
	path, _, _ := strings.Cut(question, "?")
	return fmt.Errorf("the controller does not know the question %s (%s): use the kubectl-clusterset of the controller's version",
		path, response.Status)
}

// replicas returns the pods of the controller, first that which the Lease of the leader names.
func replicas(ctx context.Context, c *cluster.Cluster) ([]corev1.Pod, error) {
	list, err := c.Kube.CoreV1().Pods(c.Namespace).List(ctx, metav1.ListOptions{
		LabelSelector: "app.kubernetes.io/component=controller", FieldSelector: "status.phase=Running",
	})
	if apierrors.IsForbidden(err) {
		err = fmt.Errorf("%w: bind the Role clusterset-viewer of that namespace", err)
	}
	if err != nil {
		return nil, err
	}
	if len(list.Items) == 0 {
		return nil, fmt.Errorf("no pod of clusterset-controller runs in namespace %s: see `kubectl -n %[1]s get pods`, set its "+
			"namespace with --system-namespace, or its address with --controller", c.Namespace)
	}
	lease, err := c.Kube.CoordinationV1().Leases(c.Namespace).Get(ctx, names.Leader, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, err
	}
	leader, _, _ := strings.Cut(ptr.Deref(lease.Spec.HolderIdentity, ""), "_")
	if at := slices.IndexFunc(list.Items, func(pod corev1.Pod) bool { return pod.Name == leader }); at > 0 {
		list.Items[0], list.Items[at] = list.Items[at], list.Items[0]
	}
	return list.Items, nil
}
