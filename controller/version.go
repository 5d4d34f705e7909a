// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"bytes"
	"context"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
)

// versionInterval is the time between two looks at the API server's version.
const versionInterval = 10 * time.Minute

// followVersion calls changed whenever the version of the API server changes, until the context ends. It ignores
// failed requests.
func followVersion(ctx context.Context, client rest.Interface, now clock.WithTicker, changed func()) {
	ticker := now.NewTicker(versionInterval)
	defer ticker.Stop()
	var last []byte
	for {
		version, err := client.Get().AbsPath("/version").Do(ctx).Raw()
		if err == nil && last != nil && !bytes.Equal(version, last) {
			changed()
		}
		if err == nil {
			last = version
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
		}
	}
}
