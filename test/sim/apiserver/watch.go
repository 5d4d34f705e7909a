// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

const (
	// bookmarkEvery is the interval of bookmarks for a watch that asks for them.
	bookmarkEvery = time.Minute
	// watchTimeout is the timeout of a watch that sets none.
	watchTimeout = 30 * time.Minute
)

// A stream is an open watch.
type stream struct {
	server  *Server
	target  *target
	matches func(runtime.Object) bool
	// at is the revision up to which events were sent.
	at int64
	// pending are the events to send; ended is set when the server closes the watch. The server's lock guards both.
	// woken signals a change of either.
	pending []event
	ended   bool
	broken  error // the error that broke the watch off
	woken   chan struct{}
	// begin are the objects that a streamed list sends first.
	begin     []runtime.Object
	initial   bool
	bookmarks bool
	writer    *io.PipeWriter
}

// watch answers with the events after a revision. The caller holds the lock.
func (s *Server) watch(req *http.Request, t *target) *http.Response {
	matches, failure := t.selector()
	if failure != nil {
		return refuse(req, failure)
	}
	bookmarks, _ := strconv.ParseBool(t.query.Get("allowWatchBookmarks"))
	streamed, _ := strconv.ParseBool(t.query.Get("sendInitialEvents"))
	reader, writer := io.Pipe()
	w := &stream{
		server: s, target: t, matches: matches, woken: make(chan struct{}, 1), initial: streamed, bookmarks: bookmarks,
		writer: writer,
	}
	asked := t.query.Get("resourceVersion")
	w.at, _ = strconv.ParseInt(asked, 10, 64)
	expired := false
	switch {
	case streamed, asked == "", asked == "0":
		w.at = s.store.revision
		objects := s.store.objects[t.Resource]
		for _, each := range slices.Sorted(maps.Keys(objects)) {
			if matches(objects[each]) {
				w.begin = append(w.begin, objects[each])
			}
		}
	default:
		expired = w.at < max(s.store.compacted, s.store.cached)
	}
	timeout := watchTimeout
	if seconds, err := strconv.Atoi(t.query.Get("timeoutSeconds")); err == nil && seconds > 0 {
		timeout = time.Duration(seconds) * time.Second
	}
	if !expired {
		w.pending = slices.DeleteFunc(slices.Clone(s.store.after(w.at)),
			func(each event) bool { return each.groupResource != t.Resource || !w.concerns(each) })
		w.wake()
		s.store.open(w)
	}
	go func() {
		err := w.send(req.Context(), timeout, expired)
		writer.CloseWithError(err) // io.EOF for nil: the end of a stream
		s.mu.Lock()
		defer s.mu.Unlock()
		s.store.close(w)
	}()
	response := respond(req, http.StatusOK, t.format.contentType(), nil)
	if t.format.protobuf {
		response.Header.Set("Content-Type", protobufType+";stream=watch")
	}
	response.Body, response.ContentLength = reader, -1
	return response
}

func (w *stream) wake() {
	select {
	case w.woken <- struct{}{}:
	default:
	}
}

// send sends events until the watch ends.
func (w *stream) send(ctx context.Context, timeout time.Duration, expired bool) error {
	stopped := context.AfterFunc(ctx, func() { w.writer.CloseWithError(ctx.Err()) })
	defer stopped()
	end := time.NewTimer(timeout)
	defer end.Stop()
	var due <-chan time.Time
	if w.bookmarks {
		bookmark := time.NewTicker(bookmarkEvery)
		defer bookmark.Stop()
		due = bookmark.C
	}
	if expired {
		status := apierrors.NewResourceExpired("too old resource version: " + strconv.FormatInt(w.at, 10)).Status()
		status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
		return w.write("ERROR", &status)
	}
	for _, each := range w.begin {
		if err := w.write("ADDED", w.target.format.present(each)); err != nil {
			return err
		}
	}
	if w.initial {
		if err := w.bookmark(map[string]string{metav1.InitialEventsAnnotationKey: "true"}); err != nil {
			return err
		}
	}
	for {
		young := false
		select {
		case <-w.woken:
		case <-due:
			young = true
		case <-end.C:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
		if err := w.server.thawed(ctx, w.target.Host); err != nil {
			return err
		}
		pending, current, ended, broken := w.take()
		for _, each := range pending {
			if err := w.tell(each); err != nil {
				return err
			}
		}
		if ended {
			return broken
		}
		if w.at = current; young {
			if err := w.bookmark(nil); err != nil {
				return err
			}
		}
	}
}

// take returns the events to send, the revision that they reach, and whether the watch has ended and with which error.
func (w *stream) take() (pending []event, current int64, ended bool, broken error) {
	w.server.mu.Lock()
	defer w.server.mu.Unlock()
	pending, w.pending = w.pending, nil
	return pending, w.server.store.revision, w.ended, w.broken
}

// selects reports whether the watch selects the object of an event, now and before.
func (w *stream) selects(each event) (is, was bool) {
	return each.eventType != watch.Deleted && w.matches(each.object), each.previous != nil && w.matches(each.previous)
}

// concerns reports whether the watch delivers an event. In a cluster, each reader watches a single Lease, and must not
// wake for Leases that the cluster writes for itself.
func (w *stream) concerns(each event) bool {
	is, was := w.selects(each)
	return is || was
}

// tell sends an event as the watch's selectors see it.
func (w *stream) tell(each event) error {
	eventType := watch.Deleted
	switch is, was := w.selects(each); {
	case is && was:
		eventType = watch.Modified
	case is:
		eventType = watch.Added
	}
	object := each.object
	if eventType == watch.Deleted {
		object = each.previous.DeepCopyObject()
		access(object).SetResourceVersion(strconv.FormatInt(each.revision, 10))
	}
	return w.write(string(eventType), w.target.format.present(object))
}

// bookmark sends the revision that the watch has reached.
func (w *stream) bookmark(annotations map[string]string) error {
	object := w.target.kind.empty()
	access(object).SetResourceVersion(strconv.FormatInt(w.at, 10))
	access(object).SetAnnotations(annotations)
	return w.write(string(watch.Bookmark), object)
}

func (w *stream) write(eventType string, object runtime.Object) error {
	_, err := w.writer.Write(w.target.format.frame(eventType, object))
	return err
}
