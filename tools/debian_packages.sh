#!/bin/sh
# Install Debian packages, and start none of the services in them. Needs root.
# Each argument is a package, or several with | between: the first that this system has.
# Exit 3: none of the alternatives exists here, and nothing was installed.
set -eu
guard=${BENCHBOOK_POLICY:-/usr/sbin/policy-rc.d}
saved=$guard.before-benchbook

restore() {
  if grep -q 'put here by benchbook' "$guard" 2>/dev/null; then rm -f "$guard"; fi
  if [ -e "$saved" ]; then mv -f "$saved" "$guard"; fi
}
restore # what a killed install left behind
trap restore EXIT
trap 'exit 130' HUP INT TERM

export DEBIAN_FRONTEND=noninteractive
apt='apt-get -q -o DPkg::Lock::Timeout=300'
$apt update || echo 'apt-get update failed; going on with the lists that are here'

packages=''
for wish; do
  chosen=''
  for name in $(echo "$wish" | tr '|' ' '); do
    if [ "$name" = "$wish" ] || apt-cache show "$name" >/dev/null 2>&1; then chosen=$name; break; fi
  done
  [ -n "$chosen" ] || exit 3
  packages="$packages $chosen"
done

if [ -e "$guard" ]; then mv "$guard" "$saved"; fi
printf '#!/bin/sh\n# put here by benchbook while it installs packages: start nothing\nexit 101\n' >"$guard"
chmod 755 "$guard"

if command -v dpkg >/dev/null; then dpkg --configure -a; fi # after an install that was killed
# shellcheck disable=SC2086
$apt install -y --no-install-recommends $packages

# Benchbook starts its own servers. The packages' services, new with them, stay off after a reboot too.
for name in $packages; do
  case $name in
    mariadb-server) service=mariadb ;;
    haproxy | pgbouncer | postgresql) service=$name ;;
    openssh-server) service=ssh ;;
    *) continue ;;
  esac
  if command -v systemctl >/dev/null; then systemctl disable "$service" || true; fi
  if command -v update-rc.d >/dev/null; then update-rc.d "$service" disable || true; fi
done
