# SPDX-License-Identifier: Apache-2.0
# PostgreSQL with streaming replication: a commit needs one of the two standbys. No program promotes a standby; the test
# does, in place of an administrator or operator.
. "$(dirname "$0")/common.bash"

PATH=$PATH:$(echo /usr/lib/postgresql/*/bin)
export PGUSER=postgres PGDATABASE=postgres PGCONNECT_TIMEOUT=2

# primary prints a connection string for the server among the given names that accepts writes.
primary() { echo "host=$(paste -sd,) target_session_attrs=read-write tcp_user_timeout=2000 keepalives_idle=2"; }

sql() { timeout 5 psql -XAtq -v ON_ERROR_STOP=1 -d "$1" -c "$2"; }

writable() { sql "$(tr ' ' '\n' <<<"$NAMES" | primary)" "$1"; }

run() {
  local source
  source="$(others | primary) connect_timeout=2"
  if [ -f "$DATA/PG_VERSION" ] && [ ! -f "$DATA/standby.signal" ] && sql "$source" 'select 1'; then
    # It was the primary, and another server is now.
    if pg_rewind -D "$DATA" --source-server="$source"; then
      touch "$DATA/standby.signal"
    else
      rm -r "${DATA:?}"/*
    fi
  fi
  if [ ! -f "$DATA/PG_VERSION" ]; then
    if [ "$CLUSTER" = east ] && ! sql "$source" 'select 1'; then
      initdb -k -D "$DATA" -U postgres -A trust >/dev/null || exit
      printf 'host all all all trust\nhost replication all all trust\n' >>"$DATA/pg_hba.conf"
      echo wal_keep_size = 512MB >>"$DATA/postgresql.conf" # pg_rewind reads it from there
    else
      until pg_basebackup -d "$source" -D "$DATA" -X stream -c fast; do
        sleep 0.5
      done
      touch "$DATA/standby.signal"
    fi
  fi
  chmod 700 "$DATA"
  exec postgres -D "$DATA" -c listen_addresses='*' -c unix_socket_directories= -c cluster_name="$CLUSTER" \
    -c synchronous_standby_names='ANY 1 (east, west, north)' \
    -c primary_conninfo="$source application_name=$CLUSTER" -c wal_retrieve_retry_interval=500ms \
    -c wal_receiver_timeout=5s -c wal_sender_timeout=5s
}

members() { writable "select 1 + count(*) from pg_stat_replication where state = 'streaming'"; }

leader() { writable 'show cluster_name'; }

setup() { writable 'create table numbers (n bigint primary key)'; }

client() {
  local n
  while read -r n; do echo "insert into numbers values ($n) returning n;"; done |
    psql -XAtq -v ON_ERROR_STOP=1 -d "$(tr ' ' '\n' <<<"$NAMES" | primary)"
}

numbers() { writable 'select n from numbers'; }

# received prints how much of the log a standby has received.
received() { sql "host=$1" "select pg_wal_lsn_diff(pg_last_wal_receive_lsn(), '0/0'), '$1' where pg_is_in_recovery()"; }

failover() {
  local best
  best=$(for name in $NAMES; do [ "$(cluster_of "$name")" = "$1" ] || received "$name"; done | sort -n | tail -1)
  sql "host=${best#*|}" 'select pg_promote()'
}

"$@"
