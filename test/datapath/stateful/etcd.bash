# SPDX-License-Identifier: Apache-2.0
# etcd, bootstrapped by SRV records. ETCD is the program.
. "$(dirname "$0")/common.bash"

run() {
  # As in an init container: wait until the SRV records have all replicas, the initial members of the cluster.
  until [ -d "$DATA/member" ] || [ "$(dig +short SRV "_etcd-server._tcp.$DOMAIN" | wc -l)" = 3 ]; do sleep 0.1; done
  exec "$ETCD" --name="$CLUSTER" --data-dir="$DATA" --discovery-srv="$DOMAIN" \
    --initial-advertise-peer-urls="http://$SELF:2380" --advertise-client-urls="http://$SELF:2379" \
    --listen-peer-urls=http://0.0.0.0:2380 --listen-client-urls=http://0.0.0.0:2379 --log-level=warn
}

call() { curl --silent --fail --connect-timeout 1 --max-time 2 "$@"; }

healthy() { call "http://$1:2379/health" | grep -q '"true"'; }

members() { for name in $NAMES; do healthy "$name" && echo "$name"; done | wc -l; }

leads() {
  local status
  status=$(call --data '{}' "http://$1:2379/v3/maintenance/status") &&
    [ "$(grep -o '"member_id":"[0-9]*"' <<<"$status" | grep -o '[0-9]*')" = \
      "$(grep -o '"leader":"[0-9]*"' <<<"$status" | grep -o '[0-9]*')" ] && cluster_of "$1"
}
leader() { each leads; }

client() {
  local name n key
  name=$(each echo_healthy) || return
  while read -r n; do
    key=$(printf 'n%08d' "$n" | base64)
    call --data "{\"key\": \"$key\", \"value\": \"$key\"}" "http://$name:2379/v3/kv/put" >/dev/null || return
    echo "$n"
  done
}
echo_healthy() { healthy "$1" && echo "$1"; }

# Base64 of nine-byte keys has no padding.
numbers() { each range | grep -o '"key":"[^"]*"' | cut -d'"' -f4 | tr -d '\n' | base64 -d | tr n '\n' | sed 's/^0*//;/^$/d'; }
range() { call --max-time 20 --data '{"key": "bg==", "range_end": "bw=="}' "http://$1:2379/v3/kv/range"; }

"$@"
