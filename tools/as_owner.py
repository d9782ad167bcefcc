"""Run a command of `make`; under `sudo make`, give what it wrote as root to the owner of the clone.

    python tools/as_owner.py COMMAND [ARGUMENT ...]

The command is asked to end when `make` ends, by TERM or by KILL. Ownership is handed back also after a
failure, so that a later plain `make` can go on.
"""

import ctypes
import os
import signal
import subprocess
import sys

PR_SET_PDEATHSIG = 1
parent = os.getppid()


def end_with_parent() -> None:
    """Have TERM sent when the parent ends; what is executed instead of this program keeps that."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)


end_with_parent()
if os.getppid() != parent:
    sys.exit(128 + signal.SIGTERM)
# Nothing that is made here is others' to change, whatever the umask.
os.umask(os.umask(0o077) | 0o022)
owner, argv = os.environ.get("SUDO_UID"), sys.argv[1:]
if not owner or os.getuid() != 0 or os.stat(".").st_uid != int(owner):
    os.execvp(argv[0], argv)

child = subprocess.Popen(argv, preexec_fn=end_with_parent)
# A terminal sends Ctrl-C to both.
signal.signal(signal.SIGINT, lambda *_: None)
for signum in (signal.SIGTERM, signal.SIGHUP):
    signal.signal(signum, lambda number, _: child.send_signal(number))
code = child.wait()
group = os.environ.get("SUDO_GID") or owner
find = ["find", ".", "-path", "./.venv", "-prune", "-o", "-user", "root"]
subprocess.run([*find, "-exec", "chown", "-h", f"{owner}:{group}", "{}", "+"], check=False)
sys.exit(code if code >= 0 else 128 - code)
