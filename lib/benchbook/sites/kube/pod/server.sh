#!/bin/sh
# The first process of a server's pod, and how that process is told what to do.
#
#   server.sh run            serve whenever asked; what ends unasked ends the container too
#   server.sh start WORD     ask for a server that carries this word
#   server.sh stop           end it cleanly; prints its exit code, or nothing if none ran
#   server.sh who            print pid, start time, and the digest of the settings
set -u
home=/var/lib/benchbook
run=$home/run data=$home/data
# Gives make_data and serve WORD; `serve` becomes the server, which is ended by `end_by`.
end_by=TERM
. /etc/benchbook/engine.sh

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
who)
  pid=$(cat "$run/pid") || exit 1
  read -r line <"/proc/$pid/stat"
  # After the name in parentheses the start time is the twentieth field (proc(5)).
  set -- ${line##*) }
  shift 19
  echo "$pid $1 $(cat /etc/benchbook/* | sha256sum | cut -c1-64)"
  ;;
*) exit 2 ;;
esac
