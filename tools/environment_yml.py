"""Write environment.yml, for conda users, from pyproject.toml and requirements.lock.

Conda brings Python and pip; pip then installs what `make setup` installs: every package of the lock,
with its hashes. The direct dependencies are named once more with their versions, for the reader.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PYTHON = "3.11"

HEADER = """\
# For conda users; made by `make lock`, don't edit. With conda or mamba:
#   conda env create -f environment.yml
#   conda activate benchbook
#   pip install --no-deps --no-build-isolation --editable .
# sysbench, MariaDB and HAProxy come from your system: `make doctor` says what is missing.
"""


def canonical(name: str) -> str:
    """Return a package's name the way the lock spells it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def locked(lock: str) -> dict[str, str]:
    """Return name → version of everything in the text of a lock."""
    return dict(re.findall(r"^([a-z0-9][a-z0-9._-]*)==([^\s;\\]+)", lock, re.MULTILINE))


def direct(pyproject: str) -> list[str]:
    """Return the names of the dependencies in the text of a pyproject.toml, extras included, sorted."""
    project = tomllib.loads(pyproject)["project"]
    asked = list(project["dependencies"])
    for extra in project.get("optional-dependencies", {}).values():
        asked += extra
    return sorted({canonical(re.split(r"[ \[<>=!~;]", line, maxsplit=1)[0]) for line in asked})


def environment(pyproject: str, lock: str) -> str:
    """Return the text of environment.yml."""
    versions = locked(lock)
    lines = [HEADER + "name: benchbook", "channels:", "  - conda-forge", "  - nodefaults", "dependencies:"]
    lines += [f"  - python={PYTHON}", "  - pip", "  - pip:", "      - -r requirements.lock"]
    lines += [f"      - {name}=={versions[name]}" for name in direct(pyproject)]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    text = environment((ROOT / "pyproject.toml").read_text(), (ROOT / "requirements.lock").read_text())
    (ROOT / "environment.yml").write_text(text)
