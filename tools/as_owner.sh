#!/bin/sh
# Run a command; under `sudo make`, give what it wrote as root to the owner of the clone.
# Ownership is handed back also after a failure, so that a later plain `make` can go on.
# Nothing that is made here is others' to change, whatever the umask.
umask g-w,o-w
code=0
"$@" || code=$?
if [ -n "${SUDO_UID-}" ] && [ "$(id -u)" = 0 ] && [ "$(stat -c %u .)" = "$SUDO_UID" ]; then
  find . -path ./.venv -prune -o -user root -exec chown -h "$SUDO_UID:${SUDO_GID:-$SUDO_UID}" {} +
fi
exit $code
