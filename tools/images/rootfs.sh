#!/bin/sh
# Makes a folder with everything that client, server and proxy need, for clusters whose images come from a folder:
#   tools/images/rootfs.sh FOLDER [MIRROR]
# Needs root and debootstrap. Programs and versions are those of the build files beside it. With TIDB=PROGRAM, as
# `make tidb` prints it, that tidb-server is in it too.
set -eu
folder=$1
. /etc/os-release
debootstrap --variant=minbase \
  --include=mariadb-server,haproxy,sysbench,python3 "${VERSION_CODENAME:-bookworm}" "$folder" ${2:+"$2"}
rm -rf "$folder/var/cache/apt/archives" "$folder/var/lib/apt/lists" "$folder/var/lib/mysql"
[ -z "${TIDB:-}" ] || install -m 0755 "$TIDB" "$folder/usr/local/bin/tidb-server"
