// SPDX-License-Identifier: Apache-2.0

package relay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/controller/relay/mailbox"
)

const (
	// maxAnswer bounds what is read of a response, in bytes.
	maxAnswer = 16 << 20
	// pageSize is the number of records in a page of a list, and smallPage that after a page was too large: so many of
	// the largest records fit.
	pageSize, smallPage = 100, 12
	// maxRecords bounds a list: records, and pages without any. A relay that returns more is not read further.
	maxRecords = 200_000
)

var errTooLarge = errors.New("the answer is too large")

// A client writes one mailbox. It is safe for concurrent use, but for the Lease.
type client struct {
	records coreclient.ConfigMapInterface
	leases  coordinationclient.LeaseInterface
	close   func()
	most    int                   // bounds lists
	last    *coordinationv1.Lease // as last read or written
}

// connect returns a client of a mailbox with a connection of its own. It sends no request.
func connect(credential member.Credential, namespace string) (*client, error) {
	httpClient, closeConnections, err := member.NewHTTPClient(credential)
	if err != nil {
		return nil, err
	}
	httpClient.Transport = limiter{httpClient.Transport}
	config := rest.CopyConfig(credential.Config)
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf
	config.QPS = -1 // the relay's own priority and fairness is the limit
	core, err := coreclient.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, err
	}
	coordination, err := coordinationclient.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, err
	}
	return &client{
		records: core.ConfigMaps(namespace), leases: coordination.Leases(namespace), close: closeConnections,
		most: maxRecords,
	}, nil
}

// list calls each with every record of the mailbox. It holds a page at a time, and returns an error if there are too many.
func (c *client) list(ctx context.Context, source mailbox.Source, each func(*corev1.ConfigMap)) error {
	options := metav1.ListOptions{LabelSelector: mailbox.Selector(source), Limit: pageSize}
	for left := c.most; ; {
		list, err := within(ctx, func(ctx context.Context) (*corev1.ConfigMapList, error) {
			return c.records.List(ctx, options)
		})
		if errors.Is(err, errTooLarge) && options.Limit > smallPage {
			options.Limit = smallPage
			continue
		}
		if err != nil {
			return err
		}
		if left -= max(1, len(list.Items)); left < 0 {
			return fmt.Errorf("the mailbox has more than %d records: delete those that this controller does not write", c.most)
		}
		for i := range list.Items {
			each(&list.Items[i])
		}
		if options.Continue = list.Continue; options.Continue == "" {
			return nil
		}
	}
}

// put writes a record, which exists or not as far as is known.
func (c *client) put(ctx context.Context, record *corev1.ConfigMap, exists bool) error {
	create := func(ctx context.Context) (*corev1.ConfigMap, error) {
		return c.records.Create(ctx, record, metav1.CreateOptions{})
	}
	update := func(ctx context.Context) (*corev1.ConfigMap, error) {
		return c.records.Update(ctx, record, metav1.UpdateOptions{}) // whatever its resourceVersion is
	}
	first, second, other := create, update, apierrors.IsAlreadyExists
	if exists {
		first, second, other = update, create, apierrors.IsNotFound
	}
	_, err := within(ctx, first)
	if err != nil && other(err) {
		_, err = within(ctx, second)
	}
	return err
}

// delete deletes a record, which may be gone already.
func (c *client) delete(ctx context.Context, name string) error {
	_, err := within(ctx, func(ctx context.Context) (*corev1.ConfigMap, error) {
		return nil, c.records.Delete(ctx, name, metav1.DeleteOptions{})
	})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// lease reads the Lease of the mailbox, nil if there is none.
func (c *client) lease(ctx context.Context) (*coordinationv1.Lease, error) {
	lease, err := within(ctx, func(ctx context.Context) (*coordinationv1.Lease, error) {
		return c.leases.Get(ctx, mailbox.HeartbeatLease, metav1.GetOptions{})
	})
	if apierrors.IsNotFound(err) {
		c.last = nil
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	c.last = lease
	return lease, nil
}

// renew writes the Lease of the mailbox on top of the one that was read or written last.
func (c *client) renew(ctx context.Context, record *coordinationv1.Lease) error {
	written, err := within(ctx, func(ctx context.Context) (*coordinationv1.Lease, error) {
		if c.last == nil {
			return c.leases.Create(ctx, record, metav1.CreateOptions{})
		}
		record.ResourceVersion = c.last.ResourceVersion
		return c.leases.Update(ctx, record, metav1.UpdateOptions{})
	})
	if err == nil {
		c.last = written
	}
	return err
}

// within sends a request with a timeout.
func within[T any](ctx context.Context, request func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	return request(ctx)
}

// A limiter bounds responses.
type limiter struct{ base http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (l limiter) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := l.base.RoundTrip(request)
	if err != nil {
		return response, err
	}
	response.Body = &limited{ReadCloser: response.Body, left: maxAnswer}
	return response, nil
}

type limited struct {
	io.ReadCloser
	left int
}

// Read implements io.Reader.
func (l *limited) Read(p []byte) (int, error) {
	if l.left <= 0 {
		return 0, fmt.Errorf("%w: more than %d bytes", errTooLarge, maxAnswer)
	}
	n, err := l.ReadCloser.Read(p[:min(len(p), l.left)])
	l.left -= n
	return n, err
}
