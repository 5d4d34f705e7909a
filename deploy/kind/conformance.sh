#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# conformance.sh CONTEXT,CONTEXT DIRECTORY VERSION: runs the conformance suite of the Multi-Cluster Services API, of the
# release that go.mod requires, on two joined clusters. The report is DIRECTORY/<release>/clusterset-dns/VERSION.yaml,
# as sig-multicluster-site takes it. The suite is fetched into bin/conformance, which also gets the output.
set -eu
release=$(go list -m -f '{{.Version}}' sigs.k8s.io/mcs-api)
suite=$(pwd)/bin/conformance
url=https://github.com/clusterset-dns/clusterset-dns
report=$2/$release/clusterset-dns/$3.yaml
mkdir -p "$suite" "${report%/*}"
[ -d "$suite/mcs-api" ] || git clone --quiet https://github.com/kubernetes-sigs/mcs-api "$suite/mcs-api"
git -C "$suite/mcs-api" checkout --quiet "$release"
rm -f "$suite"/mcs-api/conformance/report.*
GOWORK=off GOFLAGS='' go -C "$suite/mcs-api/conformance" run github.com/onsi/ginkgo/v2/ginkgo -v . -- "--contexts=$1" \
  --organization=clusterset-dns --project=clusterset-dns "--version=$3" "--url=$url" >"$suite/output.txt" 2>&1 && status=0 || status=$?
cat "$suite/output.txt"
cp "$suite/mcs-api/conformance/report.html" "$suite/"
cp "$suite/mcs-api/conformance/report.yaml" "$report"
cat >"${report%/*}/README.md" <<END
# clusterset-dns

To repeat the report $3.yaml, with Docker, kind, kubectl, helm, make and Go:

\`\`\`sh
git clone $url && cd clusterset-dns && git checkout $3
export PATH="\$PWD/bin:\$PATH" VERSION=$3 IMAGES="\$PWD/bin/images"
make build images && make kind && make conformance
\`\`\`
END
exit "$status"
