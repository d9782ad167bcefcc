#!/bin/sh
# Make this clone ready: system packages, .venv as the lock says, the package itself.
# Does only what is missing, so run it as often as you like; when nothing is, it takes a blink.
# Exit 2: this machine needs something from you first, and nothing was changed.
# With --check it only looks: exit 0 if .venv is as the lock says, else 1.
# With --pages only what rebuilding the record needs: Python and .venv, no server, no sysbench, no root; the
# modules of .venv are then compiled by the first set-up that is for more.
# With --lab also what explorations draw with (tools/lock-lab.txt); with --tests that, what only tests and lint
# need (tools/lock-tests.txt) and servers of the system. Packages of .venv stay once there.
#
# PYTHON=/path/to/python3.12 chooses the interpreter. The tests of this script describe other
# machines with BENCHBOOK_UNAME, BENCHBOOK_OS_RELEASE, BENCHBOOK_UID and BENCHBOOK_SBIN.
set -eu
# Nothing that is made here is others' to change, whatever the umask.
umask g-w,o-w
CDPATH='' cd -- "$(dirname -- "$0")/.."
here=$(pwd -P)
missing='' packages='' wanted=''
stamp=.venv/benchbook-setup
unfinished=.venv/benchbook-unfinished
with_tests=.venv/benchbook-tests
with_lab=.venv/benchbook-lab
uncompiled=.venv/benchbook-uncompiled
# Measured: .venv has 1,130 MB, tests add 210; when the cache of downloads is on the same disk, its files are
# linked and take no second place. A tenth more, so that the last file does not meet a full disk.
need_mb=1250 need_tests_mb=1500
# Servers live where an ordinary user's PATH doesn't look.
PATH=$PATH:${BENCHBOOK_SBIN-/usr/local/sbin:/usr/sbin:/sbin:/usr/libexec}
oldest=11 newest=14 # of Python 3, as in pyproject.toml

say() { printf 'set-up: %s\n' "$*" >&2; }
have() { command -v "$1" >/dev/null 2>&1; }

key() { printf '%s\n' "$here"; cksum requirements.lock pyproject.toml tools/setup.sh tools/lock-tests.txt tools/lock-lab.txt; }
# Also where an earlier set-up put them: taking away what is there helps no one.
wants_tests() { [ "$tests" = 1 ] || [ -e $with_tests ] || [ -e .venv/bin/pytest ]; }
wants_lab() { [ "$lab" = 1 ] || [ -e $with_lab ] || wants_tests; }
is_ready() {
  [ "$tests" = 0 ] || [ -e $with_tests ] || return 1
  [ "$lab" = 0 ] || [ -e $with_lab ] || [ -e $with_tests ] || return 1
  [ "$pages" = 1 ] || [ ! -e $uncompiled ] || return 1
  [ -f "$stamp" ] && [ ! -e $unfinished ] && [ "$(cat "$stamp")" = "$(key)" ] && .venv/bin/python -S -c '' 2>/dev/null
}

# --- what is missing ------------------------------------------------------------------------

python_minor() { "$1" -c 'import sys; print(sys.version_info[0] == 3 and sys.version_info[1])' 2>/dev/null; }
is_good_python() {
  minor=$(python_minor "$1") || return 1
  case $minor in *[!0-9]* | '') return 1 ;; esac
  [ "$minor" -ge $oldest ] && [ "$minor" -le $newest ]
}
find_python() { # into $python, its 3.x into $minor
  if [ -n "${PYTHON-}" ]; then
    python=$PYTHON
    have "$python" && is_good_python "$python"
    return
  fi
  for python in python3 python3.14 python3.13 python3.12 python3.11; do
    if have "$python" && is_good_python "$python"; then return 0; fi
  done
  return 1
}
can_make_venv() { "$1" -c 'import ensurepip, venv' 2>/dev/null; }

look() {
  missing='' packages='' wanted=''
  [ "$pages" = 0 ] || { look_for_python; return; }
  need sysbench sysbench 'sysbench, the load generator'
  need mariadbd mariadb-server 'MariaDB server, the database of the default study'
  need haproxy haproxy 'HAProxy, the proxy of the default study'
  want ip iproute2
  want iptables iptables
  if [ "$tests" = 1 ] && [ "$(os_id)" = debian ]; then
    want sshd openssh-server
    want pg_ctlcluster postgresql
    want pgbouncer pgbouncer
  fi
  look_for_python
}
look_for_python() {
  [ -x .venv/bin/python ] && is_good_python .venv/bin/python && return
  if find_python; then
    can_make_venv "$python" || lacks "python3.$minor-venv" "Python's venv module, to make .venv"
    return
  fi
  found=${PYTHON:-python3}
  if have "$found"; then found="found $("$found" -V 2>&1)"; else found="there is no $found"; fi
  lacks 'python3.14-venv|python3.13-venv|python3.12-venv|python3.11-venv' \
    "Python 3.$oldest to 3.$newest ($found)"
}
lacks() {
  packages="$packages $1"
  missing="$missing
  - $2"
}
need() { have "$1" || lacks "$2" "$3"; }
# Some arms or tests need these; everything else works without.
want() { have "$1" || wanted="$wanted $2"; }

# --- what to say when it can't be installed here --------------------------------------------

os_id() { # the first family we know of ID and ID_LIKE
  file=${BENCHBOOK_OS_RELEASE:-/etc/os-release}
  [ -r "$file" ] || return 0
  # shellcheck disable=SC1090
  for id in $(. "$file" && echo "${ID-} ${ID_LIKE-}"); do
    case $id in
      debian | ubuntu) echo debian; return ;;
      fedora | rhel | centos) echo fedora; return ;;
      arch) echo arch; return ;;
      alpine) echo alpine; return ;;
      opensuse* | suse | sles) echo suse; return ;;
    esac
  done
}

named() { # our (Debian's) package names in another family's words
  case $1 in
    fedora) sed 's/iproute2/iproute/; s/iptables/iptables-nft/; s/python[^ ]*/python3/' ;;
    arch) sed 's/mariadb-server/mariadb/; s/python[^ ]*/python/' ;;
    alpine) sed 's/mariadb-server/mariadb/; s/python[^ ]*/python3/' ;;
    suse) sed 's/mariadb-server/mariadb/; s/python[^ ]*/python312/' ;;
  esac
}

command_for() {
  names=$(echo "$2" | named "$1")
  case $1 in
    fedora) echo "sudo dnf install -y$names" ;;
    arch) echo "sudo pacman -S --needed$names" ;;
    alpine) echo "sudo apk add$names" ;;
    suse) echo "sudo zypper install -y$names" ;;
  esac
}

stop() { # reason, then the lines that say what to type
  {
    echo 'benchbook: this machine is not ready yet. Nothing was changed.'
    [ -z "$missing" ] || printf '\nMissing:%s\n' "$missing"
    printf '\n%s\n\n' "$1"
    shift
    for line; do printf '    %s\n' "$line"; done
    printf '\nThen run the same command again.\n'
  } >&2
  exit 2
}

stop_for_python() {
  stop "This system has no Python 3.$oldest to 3.$newest to install. One way to get it, for you alone:" \
    'python3 -m pip install --user uv && python3 -m uv python install 3.12' \
    'export PYTHON="$(python3 -m uv python find 3.12)"'
}

# --- system packages ------------------------------------------------------------------------

install_packages() {
  case $pages$(uname_s) in 0Linux | 1*) ;; *)
    stop 'The local site starts servers the way Linux does it, so Benchbook measures on Linux only.
On a Mac, with Docker running, this gives the same report in a Debian container:' \
      "docker run --rm -it -v \"\$PWD\":/benchbook -w /benchbook debian:12 \\" \
      "  sh -c 'apt-get update && apt-get install -y git make python3 && make repro'" ;;
  esac
  look
  [ -n "$packages$wanted" ] || return 0
  if [ -z "$packages" ] && is_ready; then return 0; fi # tried once, at the first set-up
  family=$(os_id)
  if [ "$family" != debian ]; then
    [ -n "$packages" ] || return 0
    typed=$(command_for "$family" "$packages$wanted")
    [ -n "$typed" ] || stop 'Packages are installed for you on Debian and Ubuntu only. Here, get with your own package manager:' \
      "$(echo "$packages$wanted" | sed 's/^ //; s/python3.14[^ ]*/python3/')"
    stop 'Packages are installed for you on Debian and Ubuntu only. Here this gets them:' "$typed"
  fi
  choose_root || {
    [ -n "$packages" ] || return 0
    case $packages in
      *'|'*)
        python_package=$(first_known "${packages##* }") || stop_for_python
        packages="${packages% *} $python_package" ;;
    esac
    stop 'Installing them needs root, or sudo that works here. As root, or with sudo:' \
      'sudo apt-get update' "sudo apt-get install -y --no-install-recommends$packages$wanted"
  }
  say "installing$packages$wanted (missing here; no service is started)"
  log=$(mktemp)
  code=0
  # shellcheck disable=SC2086
  $as_root sh tools/debian_packages.sh $packages $wanted >"$log" 2>&1 || code=$?
  case $code in
    0) rm -f "$log" ;;
    3) rm -f "$log"; stop_for_python ;;
    *)
      tail -n 15 "$log" >&2
      if [ -z "$packages" ]; then
        say "$wanted could not be installed; arms and tests that need them are skipped"
        return 0
      fi
      say "apt-get failed; everything it said is in $log"
      exit 1 ;;
  esac
  look
  [ -z "$packages" ] || stop 'apt-get reported success, yet the above is not in PATH. This shows what it did:' \
    "dpkg -L$packages"
}
uname_s() { echo "${BENCHBOOK_UNAME:-$(uname -s)}"; }
first_known() { # of package|package|..., the first that apt knows
  for name in $(echo "$1" | tr '|' ' '); do
    if apt-cache show "$name" >/dev/null 2>&1; then echo "$name"; return; fi
  done
  return 1
}
choose_root() {
  as_root=''
  [ "${BENCHBOOK_UID:-$(id -u)}" != 0 ] || return 0
  have sudo || return 1
  as_root=sudo
  sudo -n true 2>/dev/null && return 0
  [ -t 0 ] && say 'sudo may ask for your password, to install packages' && sudo true
}

# --- Python ---------------------------------------------------------------------------------

locked() { awk -v name="$1==" 'index($0, name) == 1 {on = 1} on {print} on && !/\\$/ {exit}' requirements.lock; }
wanted_lock() { # requirements.lock, without what only tests or explorations need unless that is wanted
  left=''
  wants_tests || left=tools/lock-tests.txt
  wants_lab || left="$left tools/lock-lab.txt"
  # shellcheck disable=SC2086
  awk 'FILENAME != "requirements.lock" {left[$1 "=="] = 1; next}
    /^[a-z0-9]/ {on = 1; for (name in left) if (index($0, name) == 1) on = 0}
    on {print}' $left requirements.lock
}

check_space() { # before anything is installed, not when the disk is full
  need=$need_mb
  [ "$tests" = 0 ] || need=$need_tests_mb
  if [ -x .venv/bin/python ] && [ ! -e $unfinished ]; then need=300; fi # only what changed
  have df || return 0
  free=$(df -Pk . 2>/dev/null | awk 'NR == 2 {print int($4 / 1024)}')
  case $free in *[!0-9]* | '') return 0 ;; esac
  [ "$free" -lt "$need" ] || return 0
  stop "The environment takes $need MB, and $free MB are free on the disk of this clone. Free some space, or put
the clone on another disk. This shows what takes the space:" 'df -h .' 'du -xh --max-depth=2 ~ | sort -h | tail'
}

make_venv() {
  if [ -e $unfinished ]; then
    # A package that was being written when the power failed counts as installed to any tool.
    say 'the last set-up was cut short: making .venv again'
    rm -rf .venv
  elif [ -e .venv ]; then
    # Scripts in a .venv hold its absolute path: one that was moved, or whose Python is gone, is of no use.
    if is_good_python .venv/bin/python && grep -qF "$here/.venv" .venv/bin/activate 2>/dev/null; then
      : >$unfinished
      return
    fi
    say '.venv was made for another place or another Python: making it again'
    rm -rf .venv
  fi
  find_python
  say "making .venv with $("$python" -V 2>&1)"
  mkdir .venv
  : >$unfinished
  "$python" -m venv .venv
}

fill_venv() {
  pip='.venv/bin/python -m pip --disable-pip-version-check --quiet'
  seed=$(mktemp)
  { locked uv; locked setuptools; } >"$seed"
  say 'installing the packages of requirements.lock, each checked against its hash'
  $pip install --require-hashes --no-deps -r "$seed"
  rm -f "$seed"
  # uv has its own settings; what pip was told about this network holds for uv too.
  index=${PIP_INDEX_URL:-$($pip config get global.index-url 2>/dev/null || true)}
  cert=${PIP_CERT:-$($pip config get global.cert 2>/dev/null || true)}
  [ -z "$index" ] || export UV_DEFAULT_INDEX="${UV_DEFAULT_INDEX:-$index}"
  [ -z "$cert" ] || export SSL_CERT_FILE="${SSL_CERT_FILE:-$cert}"
  lock=$(mktemp)
  wanted_lock >"$lock"
  # The one package without a wheel is built with the setuptools that was just checked, so no isolation.
  if ! .venv/bin/uv pip sync --quiet --python .venv/bin/python --require-hashes --no-build-isolation "$lock"; then
    say 'uv did not manage; trying pip, which takes about a minute longer'
    # The lock names everything, and overrides what some packages ask for: pip must not resolve again.
    $pip install --require-hashes --no-deps --no-build-isolation --no-compile -r "$lock"
  fi
  rm -f "$lock"
  # Python compiles what it loads as it goes, unless it is told to keep none of it.
  if [ "$pages" = 1 ] && [ -z "${PYTHONDONTWRITEBYTECODE-}" ]; then : >$uncompiled; else compile; fi
  say 'installing benchbook itself, as a link to lib/'
  LC_ALL=C.UTF-8 $pip install --no-deps --no-build-isolation --no-index --editable .
  # Python reads this file in the letters of the locale, and C has none of a path with an umlaut.
  for link in .venv/lib/python3.*/site-packages/__editable__.benchbook-*.pth; do echo ../../../../lib >"$link"; done
}

compile() {
  # Compiled once, here: where Python may not write, every stage would compile a thousand modules again.
  # Rebuilding the record loads a third of them, so that `make pages` leaves it (fill_venv).
  # Not what nothing loads: the packages' own tests, 70 MB, and a second client of clusters, 68 MB. Some ship
  # files for other Pythons, which fail.
  .venv/bin/python -m compileall -q -j 0 -x 'site-packages/(.*/(tests?|templates?)|kubernetes/aio)/' \
    "$(.venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')" >/dev/null 2>&1 || true
  rm -f $uncompiled
}

tell_jupyter() { # a measuring machine asks for no news
  mkdir -p .venv/etc/jupyter/labconfig
  echo '{"disabledExtensions": {"@jupyterlab/apputils-extension:announcements": true}}' \
    >.venv/etc/jupyter/labconfig/page_config.json
}

tell_git() { # `git diff` of a notebook shows cells, not JSON; with full paths, as .venv is rarely in PATH
  [ -e .git ] && have git && git rev-parse --git-dir >/dev/null 2>&1 || return 0
  bin=$here/.venv/bin
  git config diff.jupyternotebook.command "\"$bin/git-nbdiffdriver\" diff" &&
    git config merge.jupyternotebook.driver "\"$bin/git-nbmergedriver\" merge %O %A %B %L %P" &&
    git config merge.jupyternotebook.name 'merge of notebooks by cell' ||
    say 'git settings could not be written: git diff shows notebooks as JSON'
}

hand_back() { # what `sudo make` writes belongs to the owner of the clone
  [ -n "${SUDO_UID-}" ] && [ "$(id -u)" = 0 ] && [ "$(stat -c %u .)" = "$SUDO_UID" ] || return 0
  chown -R --from=0 "$SUDO_UID:${SUDO_GID:-$SUDO_UID}" .venv .git/config 2>/dev/null || true
}

tests=0 pages=0 lab=0
case ${1-} in
  --check) if is_ready; then exit 0; else exit 1; fi ;;
  --tests) tests=1 ;;
  --pages) pages=1 ;;
  --lab) lab=1 ;;
esac
began=$(date +%s)
is_ready || check_space
install_packages
is_ready && exit 0
rm -f "$stamp"
make_venv
fill_venv
tell_jupyter
tell_git
if wants_tests; then : >$with_tests; fi
if wants_lab; then : >$with_lab; fi
key >"$stamp"
rm -f $unfinished
hand_back
say "ready, after $(($(date +%s) - began)) s"
