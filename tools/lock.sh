#!/bin/sh
# Make requirements.lock from pyproject.toml, and environment.yml from both.
# Keeps the versions that are locked where it can; `make lock ARGS=--upgrade` takes the newest.
set -eu
uv pip compile pyproject.toml --extra test --constraints tools/lock-constraints.txt --overrides tools/lock-overrides.txt \
  --universal --python-version 3.11 --generate-hashes \
  --no-emit-index-url --no-emit-find-links --no-header --no-annotate --quiet \
  --output-file requirements.lock "$@"
python tools/environment_yml.py
