"""How often a change is invented in a series of 30, and a planted one found: ours beside three libraries.

The libraries pin versions of numpy that contradict each other and our lock, so each gets a virtual
environment of its own, which pip fills; that needs `--full`. BENCHBOOK_BENCH_VENVS names a folder in which
they are kept.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from benchbook.compare import changes
from benchmarks.table import Row, main

LENGTH, STEP_AT = 30, (15, 24)
NOISE = ("normal", "heavy tails", "drift")
STEPS = (1.5, 2.0, 3.0)
QUIET, STEPPED = {False: 100, True: 300}, {False: 20, True: 60}
SHARED = ("numpy", "scipy", "pip", "setuptools", "pkg_resources", "_distutils_hack")

# Each reads lists of numbers from stdin and writes a list of change points for each.
_FRAME = "import json,sys\n{}\nprint(json.dumps([[int(p) for p in find(x)] for x in json.load(sys.stdin)]))"
METHODS: Mapping[tuple[str, str], str] = {
    ("apache-otava", "its defaults (t test, p < 0.001)"): (
        "from otava.analysis import compute_change_points\n"
        "def find(x): return [c.index for c in compute_change_points(list(x))[0]]"
    ),
    ("signal-processing-algorithms", "its defaults (p <= 0.05, 100 permutations)"): (
        "from signal_processing_algorithms.energy_statistics.energy_statistics import e_divisive\n"
        "def find(x): return e_divisive(x)"
    ),
    ("signal-processing-algorithms", "p <= 0.001, 1999 permutations"): (
        "from signal_processing_algorithms.energy_statistics.energy_statistics import e_divisive\n"
        "def find(x): return e_divisive(x, 0.001, 1999)"
    ),
    ("ruptures", "Pelt, l2, penalty 2 s2 ln n"): (
        "import numpy as np, ruptures\n"
        "def find(x):\n"
        " x = np.array(x); s = np.median(abs(np.diff(x))) / 0.6745 / 2**0.5\n"
        " return ruptures.Pelt('l2', min_size=3, jump=1).fit(x).predict(2 * s * s * np.log(len(x)))[:-1]"
    ),
    ("ruptures", "Pelt, l2, penalty 5 s2 ln n"): (
        "import numpy as np, ruptures\n"
        "def find(x):\n"
        " x = np.array(x); s = np.median(abs(np.diff(x))) / 0.6745 / 2**0.5\n"
        " return ruptures.Pelt('l2', min_size=3, jump=1).fit(x).predict(5 * s * s * np.log(len(x)))[:-1]"
    ),
}


def series(is_full: bool) -> dict[tuple[str, float, int], list[list[float]]]:
    """Return made-up series of 30 by (noise, step in standard deviations, place of the step)."""
    random, made = np.random.default_rng(20261122), {}
    for noise in NOISE:
        made[noise, 0.0, 0] = [_noise(random, noise) for _ in range(QUIET[is_full])]
        for step in STEPS:
            for place in STEP_AT:
                after = step * (np.arange(LENGTH) >= place)
                made[noise, step, place] = [
                    (_noise(random, noise) + after).tolist() for _ in range(STEPPED[is_full])
                ]
    return {key: [list(one) for one in own] for key, own in made.items()}


def rows(is_full: bool) -> list[Row]:
    """Compare false alarms and finds; the libraries only with --full."""
    made = series(is_full)
    began = time.process_time()
    ours = {key: [changes.change_points(one) for one in own] for key, own in made.items()}
    found = _rows("ours (p <= 0.001)", ours, f"{time.process_time() - began:.0f} s of CPU")
    for (package, how), code in METHODS.items() if is_full else ():
        with tempfile.TemporaryDirectory() as folder:
            python = _python(package, Path(os.environ.get("BENCHBOOK_BENCH_VENVS", folder)))
            began = time.monotonic()
            theirs = _theirs(python, code, made)
            spent = f"{time.monotonic() - began:.0f} s; {_weight(python)}"
            found += _rows(f"{package}, {how}", theirs, spent)
    return found


def _noise(random: np.random.Generator, kind: str) -> np.ndarray:
    """Return 30 values with a standard deviation of one; drift has a correlation of 0.3 with its
    neighbour."""
    if kind == "heavy tails":
        return random.standard_t(3, LENGTH) / 3**0.5
    values = random.normal(size=LENGTH)
    if kind == "drift":
        for place in range(1, LENGTH):
            values[place] = 0.3 * values[place - 1] + (1 - 0.3**2) ** 0.5 * values[place]
    return values


def _rows(name: str, found: Mapping[tuple[str, float, int], Sequence[Sequence[int]]], cost: str) -> list[Row]:
    lines = [Row(name, cost)]
    for noise in NOISE:
        quiet = found[noise, 0.0, 0]
        alarms = sum(map(bool, quiet))
        told = [
            f"{step:g} sd: {_right(found, noise, step, 15)}, {_right(found, noise, step, 24)}"
            for step in STEPS
        ]
        goal = alarms <= max(1, 0.01 * len(quiet)) if name.startswith("ours") and noise != "drift" else None
        lines.append(
            Row(f"  {noise}: alarms in quiet series", f"{alarms} of {len(quiet)}", "", "",
                "at most 1 %" if goal is not None else "", goal)
        )  # fmt: skip
        lines.append(Row(f"  {noise}: one change, within 1 of 15; 24", "; ".join(told)))
    return lines


def _right(found: Mapping, noise: str, step: float, place: int) -> str:
    own = found[noise, step, place]
    return f"{100 * sum(len(one) == 1 and abs(one[0] - place) <= 1 for one in own) / len(own):.0f} %"


def _python(package: str, folder: Path) -> Path:
    python = folder / f"v-{package}" / "bin" / "python"
    if not python.is_file():
        subprocess.run([sys.executable, "-m", "venv", str(python.parents[1])], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "-q", package], check=True)
    return python


def _theirs(python: Path, code: str, made: Mapping) -> dict:
    flat = [one for own in made.values() for one in own]
    argv = [str(python), "-c", _FRAME.format(code)]
    told = subprocess.run(argv, input=json.dumps(flat), capture_output=True, text=True, check=True)
    answers = iter(json.loads(told.stdout.splitlines()[-1]))
    return {key: [next(answers) for _ in own] for key, own in made.items()}


def _weight(python: Path) -> str:
    """Say how many packages came along, and their size beside numpy and scipy, which are here already."""
    (place,) = (python.parents[1] / "lib").glob("python*/site-packages")
    size = sum(
        file.stat().st_size
        for entry in place.iterdir()
        if not entry.name.startswith(SHARED)
        for file in (entry.rglob("*") if entry.is_dir() else [entry])
        if file.is_file()
    )
    count = sum(not entry.name.startswith(SHARED) for entry in place.glob("*.dist-info"))
    return f"{count} packages beside numpy and scipy, {size / 1e6:.0f} MB"


if __name__ == "__main__":
    main(rows, __doc__)
