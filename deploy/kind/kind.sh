#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# kind.sh up: starts the kind clusters east and west, whose pods reach each other, installs and joins clusterset-dns in
# them, and exports the Service demo/web of both. kind.sh down: deletes the clusters.
#
# Needs Docker, kind, kubectl with kubectl-clusterset, and helm.
#
#   CHART    chart to install: a directory, a package or an oci:// reference (the chart of this checkout)
#   VERSION  tag of the images (that of the chart)
#   IMAGES   directory of `make images` with that tag, to load into the nodes (none: the nodes pull the images)
set -eu
chart=${CHART:-$(dirname "$0")/../chart}
clusters="east west"
system=clusterset-dns

step() { printf '\n== %s\n' "$*"; }

up() {
  number=0
  for cluster in $clusters; do
    number=$((number + 1))
    step "kind cluster $cluster"
    kind create cluster --name "$cluster" --wait 2m --config - <<CONFIG
kind: Cluster
apiVersion: kind.x-k8s.io/v1alpha4
networking: {podSubnet: 10.$number.0.0/16, serviceSubnet: 10.10$number.0.0/16}
CONFIG
  done

  step 'routes to the pods of the other cluster'
  for here in $clusters; do
    for there in $clusters; do
      [ "$here" != "$there" ] || continue
      # All nodes are on the Docker network "kind".
      kubectl --context "kind-$there" get nodes -o jsonpath='{range .items[*]}{.spec.podCIDR} {.status.addresses[?(@.type=="InternalIP")].address}{"\n"}{end}' >"$scratch/routes"
      for node in $(kind get nodes --name "$here"); do
        while read -r range address; do
          docker exec "$node" ip route replace "$range" via "$address" </dev/null
        done <"$scratch/routes"
      done
    done
  done

  if [ -n "${IMAGES:-}" ]; then
    step "images of $IMAGES"
    for image in clusterset-controller coredns-slim; do
      tar -C "$IMAGES/$image" -cf "$scratch/$image.tar" .
      for cluster in $clusters; do
        kind load image-archive "$scratch/$image.tar" --name "$cluster"
      done
    done
  fi

  for cluster in $clusters; do
    step "clusterset-dns in $cluster"
    helm install clusterset-dns "$chart" --kube-context "kind-$cluster" --namespace "$system" --create-namespace \
      --set "clusterId=$cluster" ${VERSION:+--set "controller.image.tag=$VERSION,coredns.image.tag=$VERSION"} --wait
  done

  step 'join'
  # The address in the kubeconfig of kind is that of this machine.
  kubectl clusterset join kind-east kind-west \
    --server kind-east=https://east-control-plane:6443 --server kind-west=https://west-control-plane:6443

  step 'DNS'
  for cluster in $clusters; do
    kubectl clusterset coredns enable --context "kind-$cluster"
  done

  step 'demo application'
  for cluster in $clusters; do
    kubectl --context "kind-$cluster" apply -f "$(dirname "$0")/demo.yaml"
    kubectl --context "kind-$cluster" -n demo rollout status deployment/web --timeout 3m
  done
  kubectl clusterset export demo/web --contexts kind-east,kind-west
  cat <<'NEXT'

Ask the name in west, and see why it resolves as it does:

  kubectl --context kind-west -n demo exec deployment/client -- curl -s http://web.demo.svc.clusterset.local:8080/hostname
  kubectl clusterset explain demo/web --context kind-west

Let the pods in west fail: the name resolves to those in east.

  kubectl --context kind-west -n demo scale deployment/web --replicas 0

Delete the clusters:

  deploy/kind/kind.sh down
NEXT
}

down() {
  for cluster in $clusters; do
    kind delete cluster --name "$cluster"
  done
}

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
case ${1:-} in
  up) up ;;
  down) down ;;
  *)
    echo "usage: $0 up|down" >&2
    exit 2
    ;;
esac
