# SPDX-License-Identifier: Apache-2.0
# MariaDB Galera. The writer uses the first ready replica.
. "$(dirname "$0")/common.bash"

run() {
  local new=() position=()
  cat >"$DATA.cnf" <<CONF
[mysqld]
datadir=$DATA
socket=$DATA/s
bind-address=0.0.0.0
binlog-format=ROW
innodb-autoinc-lock-mode=2
innodb-buffer-pool-size=32M
innodb-log-file-size=16M
wsrep-on=ON
wsrep-provider=$(find /usr/lib -name libgalera_smm.so | head -1)
wsrep-cluster-name=db
wsrep-cluster-address=gcomm://${NAMES// /,}
wsrep-node-name=$CLUSTER
wsrep-node-address=$SELF
wsrep-sst-method=rsync
CONF
  if [ ! -d "$DATA/mysql" ]; then
    mariadb-install-db --no-defaults --datadir="$DATA" --auth-root-authentication-method=normal \
      --skip-test-db >/dev/null || exit
    [ "$CLUSTER" = east ] && new=(--wsrep-new-cluster)
  else
    position=(--wsrep-start-position="$(mariadbd --defaults-file="$DATA.cnf" --wsrep-recover --log-error=/dev/stderr 2>&1 |
      sed -n 's/.*WSREP: Recovered position:* *//p' | tail -1)")
  fi
  printf '%s;\n' "create user if not exists root@'%'" "grant all on *.* to root@'%'" >"$DATA.sql" # one statement per line
  exec mariadbd --defaults-file="$DATA.cnf" --init-file="$DATA.sql" "${new[@]}" "${position[@]}"
}

sql() { timeout "${3:-5}" mariadb --no-defaults -NBu root --connect-timeout=1 -h "$1" -e "$2"; }

ready() { [ "$(sql "$1" "show status like 'wsrep_ready'" 2 | cut -f2)" = ON ] && echo "$1"; }

members() { for name in $NAMES; do ready "$name"; done | wc -l; }

leader() { cluster_of "$(each ready)"; }

setup() { sql "$(each ready)" 'create database db; create table db.numbers (n bigint primary key)'; }

client() {
  local n
  while read -r n; do echo "insert into db.numbers values ($n); select $n;"; done |
    mariadb --no-defaults -NBnu root --connect-timeout=1 -h "$(each ready)"
}

numbers() { sql "$(each ready)" 'set session wsrep_sync_wait=1; select n from db.numbers'; }

"$@"
