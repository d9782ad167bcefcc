"""sysbench's options in a file that is kept with the run, and the proof that sysbench took them.

sysbench passes over what it does not understand in a file, or warns and goes on with its defaults. So it is
asked beforehand, by its own script that prints what it took from this very file.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping
from pathlib import Path

from benchbook.core.model import Endpoint, PlannedRun
from benchbook.measure import loading, sysbench
from benchbook.sites.contract import Site, Start

SHOW = Path(__file__).with_name("lua") / "options.lua"
ANSWER_S = 30.0
# Switches that a run may have off.
OFF = frozenset({("mysql-ssl", "off"), ("histogram", "off")})


def write(
    site: Site, arm: str, endpoint: Endpoint, planned: PlannedRun, file: Path
) -> dict[str, dict[str, str]]:
    """Write a run's options but its account to a file; return those `asked` and those `taken` by name."""
    asked = sysbench.general(endpoint, planned)
    file.write_text(in_file(asked), encoding="utf-8")
    with tempfile.TemporaryDirectory() as scratch:
        out, err = Path(scratch) / "out", Path(scratch) / "err"
        with loading.started(site, Start(show(file), out, err, Path(scratch), arm=arm)) as child:
            child.popen.wait(timeout=ANSWER_S)
        taken = shown(out.read_text(encoding="utf-8", errors="replace"))
    return {"asked": asked, "taken": {name: taken[name] for name in asked if name in taken}}


def in_file(given: Mapping[str, str]) -> str:
    """Return options as the text of a file for `--config-file`."""
    # sysbench takes any switch in a file for on, so those that are off are left out; and no space before `=`.
    lines = [f"{name}={value}" for name, value in given.items() if (name, value) not in OFF]
    return "\n".join(lines) + "\n"


def show(file: Path) -> list[str]:
    """Return the argv that prints which options sysbench takes from a file; no database is reached."""
    return [sysbench.BINARY, f"--config-file={file}", str(SHOW), "show"]


def shown(out: str) -> dict[str, str]:
    """Return the options that `show` printed, by their names on the command line."""
    found = re.findall(r"^([a-z_]+)=(.*)$", out, re.MULTILINE)
    return {name.replace("_", "-"): value for name, value in found}
