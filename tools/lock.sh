#!/bin/sh
# Make requirements.lock from pyproject.toml; tools/lock-tests.txt, tools/lock-lab.txt and environment.yml from both.
# Keeps the versions that are locked where it can; `make lock ARGS=--upgrade` takes the newest.
set -eu
compile() {
  uv pip compile pyproject.toml --constraints tools/lock-constraints.txt --overrides tools/lock-overrides.txt \
    --universal --python-version 3.11 --no-emit-index-url --no-emit-find-links --no-header --no-annotate --quiet "$@"
}
compile --extra test --extra lab --generate-hashes --output-file requirements.lock "$@"
# What only tests, and what only JupyterLab needs: in the lock, and not there when an extra is left out.
lean=$(mktemp) lab=$(mktemp)
compile --constraints requirements.lock --output-file "$lean"
compile --constraints requirements.lock --extra lab --output-file "$lab"
list_more() { awk -F== 'NR == FNR {kept[$1] = 1; next} /^[a-z0-9]/ && !($1 in kept) {print $1}' "$1" "$2"; }
list_more "$lab" requirements.lock >tools/lock-tests.txt
list_more "$lean" "$lab" >tools/lock-lab.txt
rm -f "$lean" "$lab"
python tools/environment_yml.py
