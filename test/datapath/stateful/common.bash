# SPDX-License-Identifier: Apache-2.0
# Functions for all recipes. The test runs `bash RECIPE VERB` in a pod, with the variables
#   CLUSTER  the id of the pod's cluster
#   SELF     the pod's name: db-0.<cluster>.db.<namespace>.svc.clusterset.local
#   NAMES    the names of all replicas
#   DOMAIN   the name of the service: db.<namespace>.svc.clusterset.local
#   DATA     the pod's volume, which outlasts the pod
# The verbs of a recipe:
#   keep         the kubelet: starts the replica again and again
#   run          the container: starts the replica, and does not return
#   members      prints the number of healthy replicas
#   setup        creates what the writer needs, once
#   leader       prints the cluster of the leader, or of the replica that takes the writes
#   client       writes each number that it reads, and prints it once it is acknowledged
#   numbers      prints all numbers that are stored
#   failover C   makes another replica the leader after cluster C is lost, if no program does

set -uo pipefail

keep() { while :; do (run); sleep 1; done; }

setup() { :; }
failover() { :; }

others() { tr ' ' '\n' <<<"$NAMES" | grep -vxF "$SELF"; }

# cluster_of prints the cluster in a replica's name.
cluster_of() { cut -d. -f2 <<<"$1"; }

# attempt prints that the write of a number has ended, and the reason if it failed, in the format of ../tally.
attempt() {
  local now=$EPOCHREALTIME
  TZ=UTC printf '{"at": "%(%FT%T)T.%sZ", "who": "%s", "failure": "%s"}\n' "${now%[.,]*}" "${now#*[.,]}" "$1" "${2-}"
}

# writer writes numbers from 1 on, one at a time and each once, and prints each attempt. It replaces a client that fails or
# does not answer for 4 seconds; the first answer may take longer, because the client has to find the leader first.
writer() {
  local n=1 got limit
  while :; do
    coproc CLIENT { client; }
    local pid=$CLIENT_PID in=${CLIENT[1]} out=${CLIENT[0]}
    limit=12
    while echo "$n" >&"$in" && read -t $limit -r got <&"$out" && [ "$got" = "$n" ]; do
      attempt "$n"
      n=$((n + 1)) limit=4
    done
    attempt "$n" "no answer"
    n=$((n + 1))
    { pkill -KILL -P "$pid"; kill -KILL "$pid"; wait "$pid"; } 2>/dev/null
    sleep 0.05
  done
}

# each calls a command with the name of each replica in turn, until one succeeds.
each() {
  local name
  for name in $NAMES; do "$@" "$name" && return; done
  return 1
}
