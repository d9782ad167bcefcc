#!/bin/sh
# The first process of a server's pod, and how that process is told what to do.
#
#   server.sh run            serve whenever asked; what ends unasked ends the container too
#   server.sh start WORD     ask for a server that carries this word
#   server.sh stop           end it cleanly; prints its exit code, or nothing if none ran
#   server.sh save LABEL     copy the data of a stopped server
#   server.sh restore        put the copy back
#   server.sh pack           put the copy into one packed file; prints its digest and size
#   server.sh unpack SHA N   take N bytes on stdin for such a file; they must have this digest
#   server.sh label          print the label of the copy, if there is a whole one
#   server.sh who            print pid, start time, and the digest of the settings
#   server.sh mark           print the size of the log
#   server.sh since BYTES    print the log from there on
#   server.sh clear          remove the data, so that the next start makes new ones
set -u
home=/var/lib/benchbook
run=$home/run data=$home/data copy=$home/copy
# Gives make_data and serve WORD; `serve` becomes the server, which is ended by `end_by`.
end_by=TERM
. /etc/benchbook/engine.sh

stopped() { [ ! -e "$run/pid" ] || { echo "the server runs" >&2; exit 1; }; }

leave() {
  rm -f "$run/want"
  [ -e "$run/pid" ] && { kill -"$end_by" "$(cat "$run/pid")"; wait "$(cat "$run/pid")"; }
  exit 0
}

case ${1:-} in
run)
  trap leave TERM INT
  # Only then the folder: whoever finds it may ask for a server, and that is not to be forgotten.
  rm -f "$run/want" "$run/pid" "$run/ended"
  mkdir -p "$run"
  while :; do
    if [ -e "$run/want" ]; then
      [ -d "$data" ] || make_data >>"$run/server.log" 2>&1 || exit 3
      serve "$(cat "$run/want")" >>"$run/server.log" 2>&1 &
      pid=$!
      echo "$pid" >"$run/pid"
      wait "$pid"
      code=$?
      rm -f "$run/pid"
      if [ -e "$run/want" ]; then
        [ "$code" -ne 0 ] || code=1
        exit "$code"
      fi
      echo "$code" >"$run/ended"
    fi
    sleep 0.1
  done
  ;;
start)
  rm -f "$run/ended"
  echo "$2" >"$run/want.new"
  mv "$run/want.new" "$run/want"
  ;;
stop)
  [ -e "$run/want" ] || exit 0
  rm -f "$run/want"
  [ -e "$run/pid" ] && kill -"$end_by" "$(cat "$run/pid")"
  while [ -e "$run/pid" ]; do sleep 0.05; done
  while [ ! -e "$run/ended" ]; do sleep 0.05; done
  cat "$run/ended"
  ;;
save)
  stopped
  rm -rf "$copy" "$copy.new"
  mkdir "$copy.new"
  cp -a "$data" "$copy.new/data"
  echo "$2" >"$copy.new/label"
  sync
  mv "$copy.new" "$copy"
  ;;
restore)
  stopped
  [ -e "$copy/label" ] || { echo "no prepared data" >&2; exit 1; }
  rm -rf "$data" "$data.new"
  cp -a "$copy/data" "$data.new"
  sync
  mv "$data.new" "$data"
  ;;
pack)
  tar -C "$copy" -cf - . | gzip -1 >"$copy.tar.gz"
  echo "$(sha256sum "$copy.tar.gz" | cut -c1-64) $(wc -c <"$copy.tar.gz")"
  ;;
unpack)
  rm -rf "$copy" "$copy.new" "$copy.tar.gz"
  head -c "$3" >"$copy.tar.gz"
  echo "$2  $copy.tar.gz" | sha256sum -c - >/dev/null || exit 1
  mkdir "$copy.new"
  gzip -dc "$copy.tar.gz" | tar -C "$copy.new" -xf - || exit 1
  rm "$copy.tar.gz"
  mv "$copy.new" "$copy"
  ;;
label) [ ! -e "$copy/label" ] || cat "$copy/label" ;;
who)
  pid=$(cat "$run/pid") || exit 1
  read -r line <"/proc/$pid/stat"
  # After the name in parentheses the start time is the twentieth field (proc(5)).
  set -- ${line##*) }
  shift 19
  echo "$pid $1 $(cat /etc/benchbook/* | sha256sum | cut -c1-64)"
  ;;
mark) wc -c <"$run/server.log" 2>/dev/null || echo 0 ;;
since) tail -c "+$(($2 + 1))" "$run/server.log" ;;
clear)
  stopped
  rm -rf "$data"
  ;;
*) exit 2 ;;
esac
