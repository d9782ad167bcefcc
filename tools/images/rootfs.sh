#!/bin/sh
# Makes a folder with everything that client, server and proxy need, for clusters whose images come from a folder:
#   tools/images/rootfs.sh FOLDER [MIRROR]
# Needs root and debootstrap. Programs and versions are those of the build files beside it. A folder that has them is
# only added to: with TIDB=PROGRAM, as `make tidb` prints it, that tidb-server is in it too; with PD=PROGRAM and
# STORE=PROGRAM beside it, as `make tidb ARGS=--cluster` prints them, all parts of a cluster, whose store is unistore.
set -eu
folder=$1
here=$(dirname "$0")
. /etc/os-release
if [ ! -e "$folder/usr/bin/sysbench" ]; then
  debootstrap --variant=minbase \
    --include=mariadb-server,haproxy,sysbench,python3 "${VERSION_CODENAME:-bookworm}" "$folder" ${2:+"$2"}
  rm -rf "$folder/var/cache/apt/archives" "$folder/var/lib/apt/lists" "$folder/var/lib/mysql"
fi
put() { [ -z "$1" ] || install -m 0755 "$1" "$folder/usr/local/bin/$2"; }
put "${TIDB:-}" tidb-server
put "${PD:-}" pd-server
put "${STORE:-}" unistore-server
[ -z "${STORE:-}" ] || put "$here/tidb/tikv-server" tikv-server
