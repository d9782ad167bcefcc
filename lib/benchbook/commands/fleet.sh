# A session of each study on a host; what stands in braces is filled in (commands/fleet.py).
set -eu
# Who asked says a word now and then. The end of its connection is the end of the session, and so are {lease} s
# without a word: then it is gone for good.
exec 8<&0 </dev/null
(while [ "$(timeout {lease} dd bs=1 count=1 <&8 2>/dev/null)" = . ]; do :; done; kill -TERM 0) >/dev/null 2>&1 &
exec 8<&-
cd {base}
exec 9>fleet.lock
flock -w {wait} 9
# What is there of an earlier attempt goes on; the environment in .venv is kept from fleet to fleet.
if [ "$(cat fleet/.fleet 2>/dev/null)" != {token} ]; then
  mkdir -p fleet kept
  # What another fleet left is fetched with ours: whole sessions, and of others when they began.
  for folder in fleet/data/*/; do
    study=$(basename "$folder")
    [ -e "$folder/session.json" ] && [ -n "$(find "$folder/raw" "$folder/void" -mindepth 1 2>/dev/null | head -n 1)" ] || continue
    if ls fleet/data/record/$study/*Z-*.tar.xz >/dev/null 2>&1; then
      mv fleet/data/record/$study/*Z-*.tar.xz kept/
    elif ! ls fleet/data/record/$study/*.taken >/dev/null 2>&1; then
      cp "$folder/session.json" "kept/$study.$(cat fleet/.fleet).json"
    fi
  done
  find fleet -mindepth 1 -maxdepth 1 ! -name .venv -exec rm -rf {{}} +
  tar xzf fleet-{token}.tar.gz -C fleet --no-same-owner
  echo {token} >fleet/.fleet
fi
rm -f fleet-{token}.tar.gz
cd fleet
{setup}
export PATH="$PWD/.venv/bin:$PATH:/usr/local/sbin:/usr/sbin:/sbin" BENCHBOOK_ROOT="$PWD" PYTHONPATH="$PWD/lib"
for study in {studies}; do
  ls data/record/$study/*Z-*.tar.xz* >/dev/null 2>&1 || benchbook session $study {words}
done
