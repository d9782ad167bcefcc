#!/bin/sh
# JupyterLab, reachable from this machine only, with the whole clone in view and notebooks/ open.
set -eu
root=''
if [ "$(id -u)" = 0 ]; then root=--allow-root; fi
browser=''
if [ -z "${DISPLAY-}${WAYLAND_DISPLAY-}" ] && [ "$(uname -s)" != Darwin ]; then browser=--no-browser; fi
# shellcheck disable=SC2086
exec jupyter lab --ServerApp.ip=127.0.0.1 --ServerApp.root_dir="$(pwd -P)" \
  --LabApp.default_url=/lab/tree/notebooks --LabApp.extension_manager=readonly $root $browser "$@"
