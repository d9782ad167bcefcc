#!/bin/sh
# Writes down once a second what a process and its machine have used; builtins only, but for the pause.
#
#   sample.sh begin NAME PID   go on in the background
#   sample.sh end NAME         stop, print what was written, and remove it
set -u
home=/tmp/benchbook-samples
file=$home/$2

# PostgreSQL's sessions are processes of their own: what they used, and those that have ended, is its own too.
family() {
  set -- ${stat##*) }
  ticks=$((${12} + ${13} + ${14} + ${15})) pages=${22} own=${22}
  for one in /proc/[0-9]*/stat; do
    read -r other <"$one" || continue
    set -- ${other##*) }
    [ "$2" = "$pid" ] || continue
    ticks=$((ticks + ${12} + ${13})) pages=$((pages + ${22}))
  done 2>/dev/null
  [ -z "$rss" ] || [ "$own" -eq 0 ] || rss=$((rss * pages / own))
  stat=") S 0 0 0 0 0 0 0 0 0 0 $ticks 0"
}

line() {
  read -r up _ </proc/uptime
  read -r stat <"/proc/$pid/stat" || stat=
  rss=
  [ -r "/proc/$pid/status" ] && while read -r key value _; do
    [ "$key" = VmRSS: ] && rss=$value && break
  done <"/proc/$pid/status"
  case $stat in *"(postgres)"*) family ;; esac
  read -r cpu </proc/stat
  pressure=
  for kind in cpu io memory; do
    some=
    [ -r "/proc/pressure/$kind" ] && read -r some <"/proc/pressure/$kind"
    pressure="$pressure|$some"
  done
  kills=
  while read -r key value; do
    [ "$key" = oom_kill ] && kills=$value
  done </proc/vmstat
  total= free=
  while read -r key value _; do
    case $key in MemTotal:) total=$value ;; MemAvailable:) free=$value && break ;; esac
  done </proc/meminfo
  echo "$up|${stat##*) }|$rss|$cpu|$kills|$total|$free$pressure"
}

case $1 in
begin)
  mkdir -p "$home"
  pid=$3
  : >"$file.on"
  line >"$file"
  (
    while [ -e "$file.on" ]; do
      sleep 1
      line
    done
  ) </dev/null >>"$file" 2>/dev/null &
  ;;
end)
  pid=${3:-1}
  rm -f "$file.on"
  cat "$file"
  rm -f "$file"
  ;;
*) exit 2 ;;
esac
