# SPDX-License-Identifier: Apache-2.0
# Redis with Sentinel, which know each other only by name. A write is acknowledged once a replica has it (WAIT).
. "$(dirname "$0")/common.bash"

cli() { timeout 3 redis-cli -h "$@"; }

# master prints the name of the master according to a sentinel of the given names.
master() {
  local name got
  for name; do
    got=$(cli "$name" -p 26379 sentinel get-master-addr-by-name db 2>/dev/null | head -1)
    [[ $got == db-0.* ]] && echo "$got" && return
  done
  return 1
}

run() {
  local now
  # shellcheck disable=SC2046 # names
  now=$(master $(others)) || now=${NAMES%% *}
  [ -s "$DATA/sentinel.conf" ] || cat >"$DATA/sentinel.conf" <<CONF
port 26379
dir $DATA
protected-mode no
sentinel resolve-hostnames yes
sentinel announce-hostnames yes
sentinel announce-ip $SELF
sentinel monitor db $now 6379 2
sentinel down-after-milliseconds db 2000
sentinel failover-timeout db 6000
CONF
  local replica=()
  [ "$now" = "$SELF" ] || replica=(--replicaof "$now" 6379)
  redis-server --dir "$DATA" --appendonly yes --protected-mode no --replica-announce-ip "$SELF" \
    --repl-timeout 5 --repl-ping-replica-period 1 "${replica[@]}" &
  local server=$!
  redis-sentinel "$DATA/sentinel.conf" &
  local sentinel=$!
  trap 'kill $server $sentinel; wait' TERM
  wait -n
  kill $server $sentinel
}

# The master has both replicas, and each sentinel knows all replicas, which it learns every ten seconds. A sentinel
# would not reconfigure an unknown replica to follow a new master.
members() {
  local now name sentinels=0 replicas
  # shellcheck disable=SC2086 # names
  now=$(master $NAMES) || return
  replicas=$(cli "$now" info replication | grep -c 'state=online')
  for name in $NAMES; do
    [ "$(master "$name")" = "$now" ] && knows "$name" && sentinels=$((sentinels + 1))
  done
  echo $((sentinels < replicas + 1 ? sentinels : replicas + 1))
}
knows() { [ "$(cli "$1" -p 26379 sentinel master db | paste - - | grep -cP '^num-(slaves|other-sentinels)\t2$')" = 2 ]; }

# shellcheck disable=SC2086 # names
leader() { cluster_of "$(master $NAMES)"; }

client() {
  local now n
  # shellcheck disable=SC2086 # names
  now=$(master $NAMES) || return
  while read -r n; do
    [ "$(printf 'SET n%s 1\nWAIT 1 1000\n' "$n" | cli "$now" | tr '\n' ' ' | grep -c '^OK [12] ')" = 1 ] || return
    echo "$n"
  done
}

# shellcheck disable=SC2086 # names
numbers() { cli "$(master $NAMES)" --scan --pattern 'n*' | tr -d n; }

"$@"
