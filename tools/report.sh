#!/bin/sh
# Say where the report is (`where`), or open it in a browser if there is one (`open`).
# The site's first page if it is there, else the pages of studies and sources, the newest first.
set -eu
pages=$(ls reports/index.html 2>/dev/null || ls -t reports/studies/*.html 2>/dev/null || ls -t reports/*/*.html 2>/dev/null || true)
if [ -z "$pages" ]; then
  echo 'There is no report yet: `make repro` makes it.' >&2
  exit 1
fi
if [ "$1" = open ]; then
  first=$(echo "$pages" | head -n 1)
  if [ "$(uname -s)" = Darwin ]; then exec open "$first"; fi
  if [ -n "${DISPLAY-}${WAYLAND_DISPLAY-}" ] && command -v xdg-open >/dev/null; then exec xdg-open "$first"; fi
  echo 'There is no browser here.'
fi
echo "$pages" | while read -r page; do echo "Report: $(pwd -P)/$page"; done
