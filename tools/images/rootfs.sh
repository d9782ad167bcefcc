#!/bin/sh
# Makes a folder with everything that client, server and proxy need, for clusters whose images come from a folder:
#   tools/images/rootfs.sh FOLDER [MIRROR]
# Needs root and debootstrap. Programs and versions are those of the build files beside it. A folder that has them is
# only added to: with TIDB=PROGRAM, as `make tidb` prints it, that tidb-server is in it too; with PD=PROGRAM and
# STORE=PROGRAM beside it, as `make tidb ARGS=--cluster` prints them, all parts of a cluster, whose store is unistore,
# where TiDB Operator's start scripts look for them; with OPERATOR=PROGRAM and DISCOVERY=PROGRAM, the operator itself.
set -eu
folder=$1
here=$(dirname "$0")
. /etc/os-release
if [ ! -e "$folder/usr/bin/sysbench" ]; then
  debootstrap --variant=minbase \
    --include=mariadb-server,haproxy,sysbench,python3,wget,bind9-dnsutils "${VERSION_CODENAME:-bookworm}" "$folder" ${2:+"$2"}
  rm -rf "$folder/var/cache/apt/archives" "$folder/var/lib/apt/lists" "$folder/var/lib/mysql"
fi
put() { [ -z "$1" ] || install -m 0755 "$1" "$folder/usr/${3:-local/bin}/$2"; }
put "${TIDB:-}" tidb-server
put "${PD:-}" pd-server
put "${STORE:-}" unistore-server bin
[ -z "${STORE:-}" ] || put "$here/tidb/tikv-server" tikv-server
if [ -n "${PD:-}${STORE:-}" ]; then
  # The operator's scripts call the programs of the top folder (they lie over /usr/local/bin), in bash's words.
  for name in pd-server tikv-server tidb-server; do ln -f "$folder/usr/local/bin/$name" "$folder/$name"; done
  ln -sf bash "$folder/usr/bin/sh"
fi
put "${OPERATOR:-}" tidb-controller-manager
put "${DISCOVERY:-}" tidb-discovery
