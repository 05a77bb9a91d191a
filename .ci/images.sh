#!/usr/bin/env bash
# Builds the images of docker-compose.kafka.yml from this machine's programs,
# with exactly the tags that test/servers asks for, so that the Docker path runs
# where no image can be pulled. The entry points take what those of the public
# images take and no more than test/servers uses.
#
#   .ci/images.sh [redis] [kafka] [postgres]     (default: all three)
set -euo pipefail
cd "$(dirname "$0")/.."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

image() { # the tag in the compose file that begins with $1
  sed -n "s|^ *image: \($1:.*\)|\1|p" docker-compose.kafka.yml
}

# add ROOT FILE...: copies programs and the libraries they are linked to, under
# the paths that they have here, through symbolic links.
add() {
  local root=$1 file lib
  shift
  for file in "$@"; do
    for lib in "$file" $(ldd "$file" 2>/dev/null | grep -o '/[^ ]*' || true); do
      mkdir -p "$root$(dirname "$lib")"
      [ -e "$root$lib" ] || cp -L "$lib" "$root$lib"
    done
  done
}

# base ROOT: a shell, the few tools that entry points need, users, /tmp.
base() {
  local root=$1 tool
  mkdir -p "$root"/{bin,etc,tmp,proc,sys,dev,usr/bin,usr/local/bin,var/lib}
  chmod 1777 "$root/tmp"
  cp -L "$(command -v dash || command -v sh)" "$root/bin/sh"
  add "$root" "$(readlink -f /bin/sh)"
  for tool in sleep mv rm mkdir chown env tr; do
    add "$root" "$(command -v "$tool")"
    cp -L "$(command -v "$tool")" "$root/bin/$tool"
  done
  printf 'root:x:0:0:root:/root:/bin/sh\npostgres:x:999:999::/var/lib/postgresql:/bin/sh\n' >"$root/etc/passwd"
  printf 'root:x:0:\npostgres:x:999:\n' >"$root/etc/group"
  printf 'passwd: files\ngroup: files\nhosts: files dns\n' >"$root/etc/nsswitch.conf"
}

import() { # TAG ROOT CHANGE...
  local tag=$1 root=$2 change changes=()
  shift 2
  for change in "$@"; do changes+=(--change "$change"); done
  tar -C "$root" -c . | docker import "${changes[@]}" - "$tag" >/dev/null
  echo "image $tag: $(du -sm "$root" | cut -f1) MB"
}

build_redis() {
  local root=$work/redis
  base "$root"
  add "$root" "$(readlink -f "$(command -v redis-server)")"
  cp -L "$(command -v redis-server)" "$root/usr/local/bin/redis-server"
  mkdir "$root/data"
  printf '#!/bin/sh\nexec "$@" --protected-mode no\n' >"$root/usr/local/bin/docker-entrypoint.sh"
  chmod 755 "$root/usr/local/bin/docker-entrypoint.sh"
  import "$(image redis)" "$root" 'WORKDIR /data' 'EXPOSE 6379' \
    'ENTRYPOINT ["docker-entrypoint.sh"]' 'CMD ["redis-server"]'
}

build_postgres() {
  local root=$work/postgres bin share lib
  base "$root"
  bin=$(ls -d /usr/lib/postgresql/*/bin | sort -V | tail -1)
  lib=$("$bin/pg_config" --pkglibdir)
  share=$("$bin/pg_config" --sharedir)
  add "$root" "$bin"/{postgres,initdb,psql} "$(command -v setpriv)"
  mkdir -p "$root$lib" "$root$share" "$root/usr/share"
  cp -rL "$lib/." "$root$lib/"
  cp -rL "$share/." "$root$share/"
  cp -rL /usr/share/zoneinfo "$root/usr/share/"
  cat >"$root/usr/local/bin/docker-entrypoint.sh" <<'SH'
#!/bin/sh
# postgres [ARGS]: makes a cluster for POSTGRES_USER and runs it.
set -eu
PGDATA=/var/lib/postgresql/data
mkdir -p "$PGDATA"
chown postgres "$PGDATA"
cd "$PGDATA"
as() { setpriv --reuid=postgres --regid=postgres --clear-groups "$@"; }
printf '%s\n' "$POSTGRES_PASSWORD" >/tmp/password
as initdb -D "$PGDATA" -U "${POSTGRES_USER:-postgres}" --pwfile=/tmp/password --auth=scram-sha-256 \
  -E UTF8 --locale=C --no-sync
rm /tmp/password
echo 'host all all all scram-sha-256' >>"$PGDATA/pg_hba.conf"
if [ "${POSTGRES_DB:-postgres}" != postgres ]; then
  echo "CREATE DATABASE \"$POSTGRES_DB\"" | as postgres --single -D "$PGDATA" postgres
fi
shift
exec setpriv --reuid=postgres --regid=postgres --clear-groups \
  postgres -D "$PGDATA" -c listen_addresses='*' -c unix_socket_directories=/tmp "$@"
SH
  chmod 755 "$root/usr/local/bin/docker-entrypoint.sh"
  cp -L "$(command -v setpriv)" "$root/bin/setpriv"
  import "$(image postgres)" "$root" "ENV PATH=$bin:/usr/local/bin:/usr/bin:/bin" 'EXPOSE 5432' \
    'ENTRYPOINT ["docker-entrypoint.sh"]' 'CMD ["postgres"]'
}

build_kafka() {
  local root=$work/kafka version java libs
  base "$root"
  version=$(image apache/kafka)
  version=${version#*:}
  libs=${ONCEFENCE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/oncefence}/kafka-$version/libs
  java=$(dirname "$(dirname "$(readlink -f "$(command -v java)")")")
  mkdir -p "$root/opt/kafka" "$root/opt/java" "$root/etc/kafka/docker"
  cp -rL "$libs" "$root/opt/kafka/libs"
  tar -C "$java" --dereference --exclude=src.zip --exclude=ct.sym -c bin lib conf | tar -C "$root/opt/java" -x
  for lib in "$root"/opt/java/bin/java "$root"/opt/java/lib/{,server/}*.so; do
    ldd "$lib" 2>/dev/null | grep -o '/[^ ]*' | grep -v "^$java" || true
  done | sort -u | while read -r lib; do add "$root" "$lib"; done
  cat >"$root/etc/kafka/docker/run" <<'SH'
#!/bin/sh
# Turns KAFKA_ variables into server.properties as the public image does (KAFKA_
# off, lower case, ___ for -, __ for _, _ for .), formats and runs a broker.
set -eu
umask 022
env | while IFS='=' read -r name value; do
  case $name in
  KAFKA_HEAP_OPTS | KAFKA_OPTS) continue ;;
  KAFKA_*) ;;
  *) continue ;;
  esac
  rest=$(printf '%s' "${name#KAFKA_}" | tr 'A-Z' 'a-z') key=
  while [ -n "$rest" ]; do
    case $rest in
    ___*) key=$key- rest=${rest#___} ;;
    __*) key=${key}_ rest=${rest#__} ;;
    _*) key=$key. rest=${rest#_} ;;
    *) tail=${rest#?} key=$key${rest%"$tail"} rest=$tail ;;
    esac
  done
  printf '%s=%s\n' "$key" "$value"
done >/tmp/server.properties
java="/opt/java/bin/java ${KAFKA_HEAP_OPTS:-} -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Dorg.slf4j.simpleLogger.defaultLogLevel=warn -cp /opt/kafka/libs/*"
set -f # the * is java's
$java kafka.tools.StorageTool format --ignore-formatted -t "$CLUSTER_ID" -c /tmp/server.properties
exec $java kafka.Kafka /tmp/server.properties
SH
  chmod 755 "$root/etc/kafka/docker/run"
  import "$(image apache/kafka)" "$root" 'ENV PATH=/opt/java/bin:/usr/local/bin:/usr/bin:/bin' 'EXPOSE 9092' \
    'CMD ["/etc/kafka/docker/run"]'
}

for server in "${@:-redis postgres kafka}"; do
  # Unquoted on purpose: without arguments it is a list of three words.
  for one in $server; do "build_$one"; done
done
