# A session of each study in a pod; what stands in braces is filled in (commands/fleet_kubernetes.py).
set -eu
mkdir -p /session/fleet
cd /session/fleet
touch ../asked
(while [ $(($(date +%s) - $(stat -c %Y ../asked))) -lt {lease} ]; do sleep 9; done; kill -TERM 0) &
until [ -e /session/tree.tar.gz ]; do sleep 1; done
tar xzf /session/tree.tar.gz --no-same-owner
{setup}
export PATH="$PWD/.venv/bin:$PATH:/usr/local/sbin:/usr/sbin:/sbin" BENCHBOOK_ROOT="$PWD" PYTHONPATH="$PWD/lib"
for study in {studies}; do benchbook session $study {words}; done
tar cf /session/sessions.part data/record/*/*Z-*.tar.xz
mv /session/sessions.part /session/sessions.tar
until [ -e /session/taken ]; do sleep 1; done
