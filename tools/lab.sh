#!/bin/sh
# JupyterLab, reachable from this machine only and with a token, with the whole clone in view. It opens on the
# notebook that says where to start. Kernels get what stages get in the pipeline: this clone's environment,
# and hashes that are the same every time.
set -eu
# Nothing that is made here is others' to change, whatever the umask.
umask g-w,o-w
root=''
if [ "$(id -u)" = 0 ]; then root=--allow-root; fi
browser=''
if [ -z "${DISPLAY-}${WAYLAND_DISPLAY-}" ] && [ "$(uname -s)" != Darwin ]; then browser=--no-browser; fi
export JUPYTER_PREFER_ENV_PATH=1 PYTHONHASHSEED=0 PYDEVD_DISABLE_FILE_VALIDATION=1
# shellcheck disable=SC2086
exec jupyter lab --ServerApp.ip=127.0.0.1 --ServerApp.root_dir="$(pwd -P)" \
  --LabApp.default_url=/lab/tree/notebooks/explore/browse.ipynb --LabApp.extension_manager=readonly \
  --LabApp.news_url= $root $browser "$@"
