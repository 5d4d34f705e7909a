// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"crypto/rand"
	"net/http"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// authenticate refuses a request without the administrator's token or an issued one. The caller holds the lock.
func (s *Server) authenticate(req *http.Request) *apierrors.StatusError {
	token := strings.TrimPrefix(req.Header.Get("Authorization"), "Bearer ")
	if s.options.Administrator == "" || token == s.options.Administrator || time.Now().Before(s.tokens[token]) {
		return nil
	}
	return apierrors.NewUnauthorized("Unauthorized")
}

// issue answers a TokenRequest. Only this server accepts the token, until it expires.
func (s *Server) issue(t *target, body []byte) (runtime.Object, *apierrors.StatusError) {
	if _, failure := s.existing(t); failure != nil {
		return nil, failure
	}
	request := &authenticationv1.TokenRequest{}
	if _, _, err := codecs.UniversalDeserializer().Decode(body, nil, request); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	lifetime := time.Hour
	if seconds := request.Spec.ExpirationSeconds; seconds != nil {
		lifetime = time.Duration(*seconds) * time.Second
	}
	token := rand.Text()
	expires := time.Now().Add(lifetime)
	s.tokens[token] = expires
	request.SetGroupVersionKind(authenticationv1.SchemeGroupVersion.WithKind("TokenRequest"))
	request.Name, request.Namespace, request.CreationTimestamp = t.name, t.Namespace, now()
	request.Status = authenticationv1.TokenRequestStatus{Token: token, ExpirationTimestamp: metav1.NewTime(expires)}
	return request, nil
}
