#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# conformance.sh CONTEXT,CONTEXT: runs the conformance suite of the Multi-Cluster Services API on two joined clusters.
# The suite is fetched into bin/conformance, which also gets the output.
set -eu
suite=$(pwd)/bin/conformance
commit=ded161a
if [ ! -d "$suite/mcs-api" ]; then
  mkdir -p "$suite"
  git clone --quiet https://github.com/kubernetes-sigs/mcs-api "$suite/mcs-api"
fi
git -C "$suite/mcs-api" checkout --quiet "$commit"
cat >"$suite/mcs-api/conformance/run_test.go" <<'GO'
package conformance_test

import (
	"testing"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	_ "sigs.k8s.io/mcs-api/conformance"
)

func TestSuite(t *testing.T) {
	gomega.RegisterFailHandler(ginkgo.Fail)
	ginkgo.RunSpecs(t, "Conformance Suite")
}
GO
cd "$suite/mcs-api/conformance"
GOWORK=off GOFLAGS='' go test -count=1 -v -timeout 30m -run '^TestSuite$' . -args -contexts "$1" >"$suite/output.txt" 2>&1 && status=0 || status=$?
cat "$suite/output.txt"
cp ./*.html "$suite/" 2>/dev/null || true
exit "$status"
