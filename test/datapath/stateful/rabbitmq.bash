# SPDX-License-Identifier: Apache-2.0
# RabbitMQ: a quorum queue on nodes with long names, clustered by a list of names. Messages are published over HTTP,
# which responds once the queue has confirmed them.
. "$(dirname "$0")/common.bash"

PATH=/usr/lib/rabbitmq/bin:$PATH

run() {
  local i=0 name
  export HOME=$DATA RABBITMQ_NODENAME=rabbit@$SELF RABBITMQ_USE_LONGNAME=true RABBITMQ_CONFIG_FILE=$DATA/rabbitmq.conf \
    RABBITMQ_MNESIA_BASE=$DATA/mnesia RABBITMQ_LOG_BASE=$DATA RABBITMQ_LOGS=- RABBITMQ_ENABLED_PLUGINS_FILE=$DATA/plugins \
    RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS='+S 1 +sbwt none'
  (umask 077 && echo -n common >"$DATA/.erlang.cookie")
  echo '[rabbitmq_management].' >"$DATA/plugins"
  {
    echo cluster_formation.peer_discovery_backend = classic_config
    for name in $NAMES; do echo "cluster_formation.classic_config.nodes.$((i += 1)) = rabbit@$name"; done
    echo cluster_partition_handling = pause_minority
    echo net_ticktime = 8
    echo loopback_users = none
  } >"$RABBITMQ_CONFIG_FILE"
  exec rabbitmq-server
}

call() { curl --silent --fail --connect-timeout 1 --user guest:guest "$@"; }

healthy() { call --max-time 3 "http://$1:15672/api/health/checks/local-alarms" >/dev/null && echo "$1"; }

queue() { call --max-time 3 "http://$1:15672/api/queues/%2f/db"; }

# Before the queue exists, count the nodes in the cluster.
members() {
  local all
  all=$(each queue) || all=$(each nodes)
  grep -o '"online":\[[^]]*\]\|"name":"rabbit@[^"]*","running":true' <<<"$all" | grep -o 'rabbit@' | wc -l
}
nodes() { call --max-time 3 "http://$1:15672/api/nodes?columns=name,running"; }

setup() {
  call --max-time 10 -X PUT --data '{"durable": true, "arguments": {"x-queue-type": "quorum", "x-quorum-initial-group-size": 3}}' \
    "http://$(each healthy):15672/api/queues/%2f/db"
}

leader() { cluster_of "$(each queue | grep -o '"leader":"rabbit@[^"]*"' | cut -d@ -f2)"; }

client() {
  local name n
  name=$(each healthy) || return
  while read -r n; do
    call --max-time 3 --data '{"properties": {"delivery_mode": 2}, "routing_key": "db", "payload": "'"$n"'", "payload_encoding": "string"}' \
      "http://$name:15672/api/exchanges/%2f/amq.default/publish" | grep -q '"routed":true' || return
    echo "$n"
  done
}

numbers() {
  call --max-time 60 --data '{"count": 1000000, "ackmode": "ack_requeue_true", "encoding": "auto"}' \
    "http://$(each healthy):15672/api/queues/%2f/db/get" | grep -o '"payload":"[0-9]*"' | grep -o '[0-9]*'
}

"$@"
