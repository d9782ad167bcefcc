"""What `dvc repro` takes with nothing changed, what a change asks for, and what a stage takes to begin.

A clone of this checkout with five studies and five sources. Nothing is measured in it: every output is a file
with a line of text that `dvc commit` takes as made, so DVC finds a finished pipeline with the
real dependencies. What remains of the seconds is named: the imports of DVC, then its look at the files.
"""

import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import nbformat
from ruamel.yaml import YAML

from benchmarks.table import ROOT, Row, main

STUDIES = ("quick", "second", "third", "fourth", "fifth")
MEASURING = {"provision", "prepare", "warm-up", "run-matrix", "parse", "analyze"}
SLOWEST = 5


def rows(is_full: bool) -> list[Row]:
    """Make the clone, time DVC in it, and time an empty notebook."""
    times = 5 if is_full else 3
    with tempfile.TemporaryDirectory(prefix="bb-pipeline-") as place:
        clone = clone_of(Path(place) / "clone")
        stages = _stages(clone)
        _fake(clone, stages)
        before_s = _children_cpu_s()
        wall_s = min(_seconds(clone, "repro") for _ in range(times))
        cpu_s = (_children_cpu_s() - before_s) / times
        start_s = min(_seconds(clone, "root") for _ in range(times))
        imported_s, heaviest = _imports(clone)
        is_idle = _asked(clone) == set()
        (clone / "lib/benchbook/show/theme.py").open("a", encoding="utf-8").write("\n# A colour\n")
        figure = _asked(clone)
        subprocess.run(["git", "checkout", "-q", "lib"], cwd=clone, check=True)
        study = clone / "studies" / "second.yaml"
        study.write_text(study.read_text().replace("blocks: 5", "blocks: 6"), encoding="utf-8")
        block = _asked(clone)
        notebook_s, bare_s = _notebook(Path(place))
    return [
        Row(f"dvc repro, nothing changed, {len(stages)} stages", f"{wall_s:.2f} s (CPU {cpu_s:.2f} s)",
            f"dvc root (its start) {start_s:.2f} s", f"{wall_s / start_s:.1f} ×", "≤ 2 s",
            wall_s <= 2 and is_idle),
        Row("  what it is: imports of DVC", f"{imported_s:.2f} s", f"most: {heaviest}"),
        Row("  what it is: reading dvc.yaml, looking at files", f"{max(0.0, wall_s - imported_s):.2f} s"),
        Row("a changed figure asks for", ", ".join(sorted({name.split("@")[0] for name in figure})), "", "",
            "pages only", bool(figure) and not {name.split("@")[0] for name in figure} & MEASURING),
        Row("one block more asks for", ", ".join(sorted(block)), "", "", "that study only",
            bool(block) and all(name.endswith("@second") for name in block)),
        Row("an empty notebook through papermill", f"{notebook_s:.2f} s", f"python -c pass {bare_s:.2f} s",
            f"{notebook_s - bare_s:.2f} s more"),
    ]  # fmt: skip


def clone_of(path: Path) -> Path:
    """Copy this checkout as it is, edits included, and commit it; dvc.lock is left out, and four studies are
    added."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (path / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, path / name)
    (path / "dvc.lock").unlink(missing_ok=True)
    params = (path / "params.yaml").read_text(encoding="utf-8")
    listed = "".join(f"  {name}: studies/{name}.yaml\n" for name in STUDIES)
    params = re.sub(r"^studies:.*\n(  .*\n)+", f"studies:\n{listed}", params, flags=re.M)
    (path / "params.yaml").write_text(params, encoding="utf-8")
    for name in STUDIES[1:]:
        shutil.copy2(path / "studies/quick.yaml", path / f"studies/{name}.yaml")
    for argv in (["init", "-q"], ["add", "-A"],
                 ["-c", "user.name=b", "-c", "user.email=b@b", "commit", "-qm", "b"]):  # fmt: skip
        subprocess.run(["git", *argv], cwd=path, check=True, capture_output=True)
    return path


def _stages(clone: Path) -> dict[str, list[str]]:
    """Return each stage's outputs by its name, foreach written out."""
    yaml = YAML(typ="safe")
    document = yaml.load((clone / "dvc.yaml").read_text(encoding="utf-8"))["stages"]
    params = yaml.load((clone / "params.yaml").read_text(encoding="utf-8"))
    stages = {}
    for name, stage in document.items():
        items = params[stage["foreach"].strip("${}")] if "foreach" in stage else [None]
        word = "${key}" if isinstance(items, dict) else "${item}"
        for item in items:
            outs = [
                next(iter(out)) if isinstance(out, dict) else out
                for key in ("outs", "metrics", "plots")
                for out in stage.get("do", stage).get(key, [])
            ]
            full = name if item is None else f"{name}@{item}"
            stages[full] = [out.replace(word, str(item)) for out in outs]
    return stages


def _fake(clone: Path, stages: dict[str, list[str]]) -> None:
    """Make every output as a line of text, and have DVC take them as made."""
    for name, outs in stages.items():
        for out in outs:
            path = clone / out
            if not path.suffix:
                path /= "file"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("{}\n" if path.suffix == ".json" else f"made by {name}\n", encoding="utf-8")
    subprocess.run([*_dvc(), "commit", "-f", "-q"], cwd=clone, check=True, capture_output=True)


def _dvc() -> list[str]:
    return [sys.executable, "-m", "dvc"]


def _seconds(clone: Path, *words: str) -> float:
    began = time.monotonic()
    subprocess.run([*_dvc(), *words], cwd=clone, check=True, capture_output=True)
    return time.monotonic() - began


def _children_cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _asked(clone: Path) -> set[str]:
    """Return the stages that DVC would run because something they depend on has changed.

    Stages further down are asked for only if what lies between comes out differently.
    """
    told = subprocess.run(
        [*_dvc(), "status", "--json"], cwd=clone, check=True, capture_output=True, text=True
    ).stdout
    return set(YAML(typ="safe").load(told) or {})


def _imports(clone: Path) -> tuple[float, str]:
    """Return the seconds that `dvc repro` spends importing, and the packages that take most of them."""
    told = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "dvc", "repro"],
        cwd=clone, check=True, capture_output=True, text=True,
    ).stderr  # fmt: skip
    own: Counter[str] = Counter()
    for line in told.splitlines():
        if match := re.match(r"import time: +(\d+) \| +\d+ \| +(\S+)", line):
            own[match[2].split(".")[0]] += int(match[1])
    most = ", ".join(f"{name} {spent / 1e6:.2f}" for name, spent in own.most_common(SLOWEST))
    return sum(own.values()) / 1e6, most


def _notebook(place: Path) -> tuple[float, float]:
    """Return the seconds of an empty notebook through papermill, and of a Python that does nothing."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("pass")])
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(notebook, place / "empty.ipynb")
    argv = [sys.executable, "-m", "papermill", "--no-progress-bar", "--kernel", "python3"]
    argv += [str(place / "empty.ipynb"), str(place / "made.ipynb")]
    # The first start reads the environment from disk.
    return min(_wall_s(argv) for _ in range(3)), min(
        _wall_s([sys.executable, "-c", "pass"]) for _ in range(3)
    )


def _wall_s(argv: list[str]) -> float:
    began = time.monotonic()
    subprocess.run(argv, check=True, capture_output=True)
    return time.monotonic() - began


if __name__ == "__main__":
    main(rows, __doc__)
