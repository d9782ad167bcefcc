"""What programs do in the tests' place of what takes the time of all other tests.

MariaDB's installer copies a data folder that was made with the same words before. In sysbench's closed loops
each transaction begins with a wait, or one connection takes a core that nobody else uses: 4 ms, or
BENCHBOOK_TESTS_WAIT_US of `process.PLAIN`. Slow tests, some of which hold what a query costs against what was
planted, and `make test-faults` have loops without it.
"""

import contextlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest import mock

from benchbook.core.util.errors import SiteError
from benchbook.sites import workspace as labs
from benchbook.sites.machine import local_machine
from benchbook.sites.processes import process
from tests import depth, rooms

INSTALLER, ACCOUNT = "mariadb-install-db", "mysql"
INSTALLED = local_machine.name_variable(INSTALLER)
# It makes a log of 96 MiB, which a server of a test makes one of 8 MiB at its first start.
SCRIPT = """#!/bin/sh
set -e
for word; do
  case $word in
    --datadir=*) data=${word#*=} ;;
    --tmpdir=*) ;;
    *) same="$same $word" ;;
  esac
done
model=${0%/*}/$(printf %s "$same" | sha256sum | cut -c -16)
exec 9> "$model.lock"
flock 9
if [ -d "$model" ]; then
  cp -a --sparse=always "$model/." "$data"
else
  PROGRAM "$@" --innodb-log-file-size=8M
  cp -a --sparse=always "$data" "$model.part"
  mv "$model.part" "$model"
fi
"""
# sysbench looks for modules below the home first. The wait is a part of the event, as a slow answer would be.
HOME, MODULES = "BENCHBOOK_TESTS_HOME", Path(".luarocks", "share", "lua", "5.1")
COMMON = """
dofile(package.path:match("([^;]*/sysbench/)%?%.lua") .. "oltp_common.lua")
local ffi = require("ffi")
ffi.cdef("int usleep(unsigned int);")
local init = thread_init
function thread_init()
   init()
   local whole = event
   function event(...)
      ffi.C.usleep(tonumber(os.getenv("BENCHBOOK_TESTS_WAIT_US") or 4000))
      return whole(...)
   end
end
"""


def begin() -> Callable[[], None]:
    """Let this process and those of its workers have both; return what ends that.

    An installer that is not here, or that the environment names already, is left as it is. Tests on hosts
    have the true programs, for those don't inherit our environment; `pipeline/clone.py` gives both to clones.
    """
    folder = Path(tempfile.mkdtemp(prefix="bb-programs-", dir=rooms.folder()))
    folder.chmod(0o755)
    made = {} if depth.IS_DEEP else {HOME: str(folder)}
    (folder / MODULES).mkdir(parents=True)
    (folder / MODULES / "oltp_common.lua").write_text(COMMON, encoding="utf-8")
    program = local_machine.find_program(INSTALLER)
    try:
        account = labs.service_user(ACCOUNT)
    except SiteError:
        program = None
    if program is not None and INSTALLED not in os.environ:
        if account is not None:
            shutil.chown(folder, account)
        script = folder / INSTALLER
        script.write_text(SCRIPT.replace("PROGRAM", program), encoding="utf-8")
        script.chmod(0o755)
        made[INSTALLED] = str(script)
    os.environ |= made

    def end() -> None:
        for name in made:
            del os.environ[name]
        shutil.rmtree(folder)

    return end


@contextlib.contextmanager
def calm(is_wanted: bool) -> Iterator[None]:
    """Let what a test starts in labs have the home in which sysbench finds how to wait, if that is wanted."""
    home = {"HOME": os.environ[HOME]} if is_wanted and HOME in os.environ else {}
    with mock.patch.dict(process.PLAIN, home):
        yield
