# The first process of a server's pod: runs the program that is asked for. One that ends unasked ends the container.
#   want    what is to run, as a script; once it is gone the program is to end
#   pid     number and start time of what runs
#   ended   its exit code, once it has ended as asked
run=/var/lib/benchbook/run
leave() {
  rm -f "$run/want"
  [ -e "$run/pid" ] && { kill -TERM "$pid"; wait "$pid"; }
  exit 0
}
trap leave TERM INT
rm -f "$run/want" "$run/pid" "$run/ended"
mkdir -p "$run"
while :; do
  if [ -e "$run/want" ]; then
    sh "$run/want" >>"$run/server.log" 2>&1 &
    pid=$!
    # After the name in parentheses the start time is the twentieth field (proc(5)).
    read -r line <"/proc/$pid/stat"
    set -- ${line##*) }
    shift 19
    echo "$pid $1" >"$run/pid.new" && mv "$run/pid.new" "$run/pid"
    wait "$pid"
    code=$?
    rm -f "$run/pid"
    [ ! -e "$run/want" ] || exit $((code ? code : 1))
    echo "$code" >"$run/ended"
  fi
  sleep 0.1
done
