#!/bin/sh
# Remove what can be made again in a minute. What was measured (data/, reports/, DVC's cache) stays.
set -eu
if [ -x .venv/bin/benchbook ]; then .venv/bin/benchbook down || true; fi
for key in diff.jupyternotebook merge.jupyternotebook; do
  git config --remove-section "$key" 2>/dev/null || true # they point into .venv
done
rm -rf .venv .pytest_cache .ruff_cache .mypy_cache .hypothesis build lib/*.egg-info
find . -name __pycache__ -prune -exec rm -rf {} +
find . -name .ipynb_checkpoints -prune -exec rm -rf {} +
