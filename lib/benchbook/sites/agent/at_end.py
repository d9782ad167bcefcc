"""What is to be done when all ends here: programs that end what runs on other hosts too, such as a cluster.

They are written down before anything is started, so that whoever ends this host's agent knows them.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from benchbook.sites import lab as labs
from benchbook.sites.processes.process import PLAIN

RECORD = "last.json"
MOST_S = 600.0


def note(folder: Path, name: str, order: dict[str, Any]) -> None:
    """Write down what ends something: `end` and `purge` are command lines, `env` their environment."""
    known = labs.noted(folder / RECORD)
    known[name] = {**order, "is_up": True}
    labs.write_private(folder / RECORD, json.dumps(known))


def run(folder: Path, purge: bool = False) -> list[str]:
    """Do what was written down and was not done yet; return in words what was done, or that it failed."""
    done = []
    known = labs.noted(folder / RECORD)
    for name, order in list(known.items()):
        if not purge and not order["is_up"]:
            continue
        argv = order["purge" if purge else "end"]
        try:
            code = subprocess.run(
                argv, env={**PLAIN, **order["env"]}, cwd="/", timeout=MOST_S, stdin=-3, stdout=-3, stderr=-3
            ).returncode
        except (OSError, subprocess.TimeoutExpired) as error:
            done.append(f"{name}: could not be ended: {error}")
            continue
        done.append(f"{name}: {'removed' if purge else 'stopped'}" if code == 0 else f"{name}: exit {code}")
        if code == 0 and purge:
            del known[name]
        elif code == 0:
            order["is_up"] = False
        labs.write_private(folder / RECORD, json.dumps(known))
    return done
