#!/bin/sh
# Make requirements.lock from pyproject.toml, tools/lock-tests.txt and environment.yml from both.
# Keeps the versions that are locked where it can; `make lock ARGS=--upgrade` takes the newest.
set -eu
compile() {
  uv pip compile pyproject.toml --constraints tools/lock-constraints.txt --overrides tools/lock-overrides.txt \
    --universal --python-version 3.11 --no-emit-index-url --no-emit-find-links --no-header --no-annotate --quiet "$@"
}
compile --extra test --generate-hashes --output-file requirements.lock "$@"
# What only tests need: in the lock, and not there when they are left out.
lean=$(mktemp)
compile --constraints requirements.lock --output-file "$lean"
awk -F== 'NR == FNR {kept[$1] = 1; next} /^[a-z0-9]/ && !($1 in kept) {print $1}' "$lean" requirements.lock \
  >tools/lock-tests.txt
rm -f "$lean"
python tools/environment_yml.py
