# A session on a host; what stands in braces is filled in (commands/fleet.py).
set -eu
# The end of our input is the end of the session: who asked is gone, or stops it.
exec 8<&0 </dev/null
(cat <&8; kill -TERM 0) >/dev/null 2>&1 &
exec 8<&-
cd {base}
exec 9>fleet.lock
flock -w {wait} 9
# What is there of an earlier attempt goes on; the environment in .venv is kept from fleet to fleet.
if [ "$(cat fleet/.fleet 2>/dev/null)" != {token} ]; then
  mkdir -p fleet
  find fleet -mindepth 1 -maxdepth 1 ! -name .venv -exec rm -rf {{}} +
  tar xzf fleet-{token}.tar.gz -C fleet --no-same-owner
  echo {token} >fleet/.fleet
fi
rm -f fleet-{token}.tar.gz
cd fleet
{setup}
export PATH="$PWD/.venv/bin:$PATH:/usr/local/sbin:/usr/sbin:/sbin" BENCHBOOK_ROOT="$PWD" PYTHONPATH="$PWD/lib"
ls data/record/{study}/*.tar.xz >/dev/null 2>&1 || benchbook session {study} {words}
