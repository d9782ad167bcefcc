"""The measured record made again from the raw files of its archives: tables, findings, pages, all compared.

One stage for all of it: a process that takes study after study imports everything once, and this one, which
only deals them out, next to nothing.
"""

from __future__ import annotations

import multiprocessing
import os
import shutil
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor

from benchbook.core import parallel, paths, record
from benchbook.core.errors import BenchbookError, InputErrors

_MOST_WORKERS = 4


def run() -> int:
    """Make every recorded study again below `data/recorded` and `reports/record`.

    InputErrors names every archive and file that is not as recorded, and every finding that differs.
    """
    root, index = paths.root(), record.read()
    for folder in (root / "data" / "recorded", root / "reports" / "record"):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
    wrong = list(strangers(index))
    shares = _shares(index)
    if len(shares) < 2:
        wrong += [one for share in shares for one in _several(share, str(root))]
    else:
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(len(shares), context, initializer=parallel.end_with_parent) as pool:
            for found in pool.map(_several, shares, [str(root)] * len(shares)):
                wrong += found
    if wrong:
        raise InputErrors(wrong)
    runs = sum(entry.runs for entry in index.studies.values())
    print(f"{len(index.studies)} recorded studies made again from {runs} runs: all as recorded")
    return 0


def strangers(index: record.Index) -> Iterator[str]:
    """Name archives without an entry and entries without an archive."""
    there = {file.name.removesuffix(".tar.xz") for file in paths.record().glob("*.tar.xz")}
    for name in sorted(there - set(index.studies)):
        yield f"data/record/{name}.tar.xz: not in {record.INDEX}; `make record` writes both"
    for name in sorted(set(index.studies) - there):
        yield f"data/record/{record.INDEX}: {name}: there is no data/record/{name}.tar.xz; remove the entry"


def _shares(index: record.Index) -> list[list[str]]:
    """Deal the studies out to the cores, the largest first, so that all end at about the same time."""
    names = sorted(index.studies, key=lambda name: (-index.studies[name].runs, name))
    there = [name for name in names if paths.recorded(name).archive.is_file()]
    count = max(1, min(len(os.sched_getaffinity(0)), _MOST_WORKERS, len(there)))
    return [share for place in range(count) if (share := there[place::count])]


def _several(names: Sequence[str], root: str) -> list[str]:
    """Make some studies again; return what is wrong with them."""
    from benchbook.commands import made_again

    os.environ["BENCHBOOK_ROOT"] = root
    wrong: list[str] = []
    for name in names:
        try:
            wrong += made_again.one(name)
        except InputErrors as error:
            wrong += [f"{name}: {text}" for text in error.errors]
        except BenchbookError as error:
            wrong.append(f"data/record/{name}.tar.xz: {error}")
    return wrong
