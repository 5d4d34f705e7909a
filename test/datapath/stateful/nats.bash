# SPDX-License-Identifier: Apache-2.0
# NATS JetStream: a stream with three replicas. The client uses the text protocol of NATS directly.
. "$(dirname "$0")/common.bash"

run() {
  cat >"$DATA/nats.conf" <<CONF
server_name: $CLUSTER
listen: 0.0.0.0:4222
http: 0.0.0.0:8222
jetstream: {store_dir: "$DATA"}
cluster: {
  name: db
  listen: 0.0.0.0:6222
  no_advertise: true
  routes: [$(for name in $NAMES; do printf '"nats://%s:6222", ' "$name"; done)]
}
CONF
  exec nats-server -c "$DATA/nats.conf"
}

connect() {
  exec 3<&- 2>/dev/null
  reachable "$1" && { exec 3<>"/dev/tcp/$1/4222"; } 2>/dev/null && read -t 1 -r _ <&3 &&
    printf 'CONNECT {"verbose":false}\r\nSUB reply.%s 1\r\n' $$ >&3
}
reachable() { curl --silent --fail --connect-timeout 1 --max-time 2 "http://$1:8222/healthz" >/dev/null; }

# ask sends a request with a subject and a body, and prints the body of the reply.
ask() {
  local line
  printf 'PUB %s reply.%s %d\r\n%s\r\n' "$1" $$ "${#2}" "$2" >&3
  while read -t 3 -r line <&3; do
    case $line in
    PING*) printf 'PONG\r\n' >&3 ;;
    MSG*) read -t 3 -r line <&3 && printf '%s\n' "${line%$'\r'}" && return ;;
    -ERR*) return 1 ;;
    esac
  done
  return 1
}

info() { each connect && ask "\$JS.API.STREAM.INFO.db" "${1-}"; }

members() { for name in $NAMES; do reachable "$name" && echo; done | wc -l; }

setup() {
  each connect &&
    ask "\$JS.API.STREAM.CREATE.db" '{"name":"db","subjects":["n.*"],"num_replicas":3,"storage":"file","retention":"limits"}' |
    grep -q '"config"'
}

leader() { info | grep -o '"leader":"[^"]*"' | cut -d'"' -f4; }

client() {
  local n
  each connect || return
  while read -r n; do
    ask "n.$n" '' | grep -q '"seq"' || return
    echo "$n"
  done
}

numbers() { info '{"subjects_filter":">"}' | grep -o '"n\.[0-9]*":' | grep -o '[0-9]*'; }

"$@"
