// SPDX-License-Identifier: Apache-2.0

package cluster

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
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/clusterset-dns/clusterset-dns/controller/state"
)

const (
	// askTimeout bounds a request to the controller, with its connection.
	askTimeout = 30 * time.Second
	// electionInterval is the time between two requests while no replica leads.
	electionInterval = time.Second
	// maxAnswer bounds the answer, in bytes.
	maxAnswer = 256 << 20
)

// forwardTimeout bounds how long the connection to one pod takes. A test shortens it.
var forwardTimeout = 10 * time.Second

// errStandby is the answer of a replica that does not lead.
var errStandby = errors.New("no replica of the controller leads: try again")

// State asks the leading controller for its state. The state is nil if there is an error.
func (c *Cluster) State(ctx context.Context) (*state.Cluster, error) {
	known := &state.Cluster{}
	if err := c.Ask(ctx, state.PathStatus, known); err != nil {
		return nil, err
	}
	return known, nil
}

// Ask asks the leading controller of the cluster for a document. It waits for a leader: after an
// upgrade there is none for some seconds.
func (c *Cluster) Ask(ctx context.Context, question string, document any) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	err := errStandby
	_ = wait.PollUntilContextCancel(ctx, electionInterval, true, func(ctx context.Context) (bool, error) {
		err = c.askReplicas(ctx, question, document)
		return !errors.Is(err, errStandby), nil
	})
	return err
}

func (c *Cluster) askReplicas(ctx context.Context, question string, document any) error {
	if c.Controller != "" {
		return get(ctx, c.Controller, question, document)
	}
	pods, err := c.Kube.CoreV1().Pods(c.Namespace).List(ctx, metav1.ListOptions{
		LabelSelector: "app.kubernetes.io/component=controller", FieldSelector: "status.phase=Running",
	})
	if err != nil {
		return c.allowed(err)
	}
	if len(pods.Items) == 0 {
		return fmt.Errorf("no pod of clusterset-controller runs in namespace %s: see `kubectl -n %[1]s get pods`, set its "+
			"namespace with --system-namespace, or its address with --controller", c.Namespace)
	}
	// A replica that does not answer may be on a dead node: another one leads, or is about to.
	for _, ready := range []bool{true, false} {
		for i := range pods.Items {
			pod := &pods.Items[i]
			if isReady(pod) != ready {
				continue
			}
			forwarded, stop, failed := c.Forward(ctx, c.Namespace, pod.Name, PortOf(pod, "metrics", 8080))
			if failed == nil {
				failed = get(ctx, forwarded, question, document)
				stop()
				var broken *url.Error
				if !errors.Is(failed, errStandby) && !errors.As(failed, &broken) {
					return failed
				}
			}
			if err == nil || errors.Is(failed, errStandby) { // a replica may lead soon
				err = c.allowed(failed)
			}
		}
	}
	return err
}

func get(ctx context.Context, address, question string, document any) error {
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
		var of struct{ Version string }
		if json.Unmarshal(body, &of) == nil && of.Version == state.Version && json.Unmarshal(body, document) == nil {
			state.Clean(document)
			return nil
		}
	case http.StatusServiceUnavailable:
		return errStandby
	case http.StatusUnprocessableEntity, http.StatusForbidden:
		return errors.New(state.Safe(strings.TrimSpace(string(body))))
	}
	path, _, _ := strings.Cut(question, "?")
	return fmt.Errorf("the controller does not know the question %s (%s): use the kubectl-clusterset of the controller's version",
		path, response.Status)
}

// allowed adds to an error the Role that grants the missing right. The error of a port-forward has only a text.
func (c *Cluster) allowed(err error) error {
	if apierrors.IsForbidden(err) || strings.Contains(err.Error(), "orbidden") {
		err = fmt.Errorf("%w: %w: bind the Role clusterset-viewer of namespace %s, or read the conditions of your ServiceExports "+
			"and ServiceImports", ErrForbidden, err, c.Namespace)
	}
	return err
}
