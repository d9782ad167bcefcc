#!/bin/sh
# Store notebooks clean: no outputs, no counts, none of papermill's traces. With --verify, only look.
# The working file is stripped, not the blob by a git filter: DVC hashes the working file.
set -eu
find notebooks -name '*.ipynb' -not -path '*/.ipynb_checkpoints/*' -exec nbstripout --keep-id "$@" --extra-keys \
  'metadata.papermill metadata.language_info cell.metadata.papermill cell.metadata.execution cell.metadata.collapsed' {} +
