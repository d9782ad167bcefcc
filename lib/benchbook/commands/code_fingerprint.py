"""Code of `sites` that a study's measuring runs: one file a study; its stages depend on that.

A change for one kind of site, engine or proxy then asks no study on another one to be measured again.
"""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Iterable
from functools import cache
from importlib.util import find_spec
from itertools import chain
from pathlib import Path

from benchbook.core.study import descriptors, load, registry
from benchbook.core.study.study import StudySpec
from benchbook.core.util import files, paths

PACKAGE = Path(__file__).resolve().parents[1]
SITES = PACKAGE / "sites"
# What every stage that measures begins with, whatever the study names.
ALWAYS = ("benchbook.sites", "benchbook.sites.provision")
# Rooms of which only the modules count that are imported: no program is started from a file there.
BY_MODULE = ("engines", "proxies", "tidb", "descriptors")


def write_fingerprints() -> int:
    """Write for each study of params.yaml the SHA-256 of each file of `of_study`; return an exit code."""
    for name in load.load_params().studies:
        parts = of_study(load.load_study(name))
        files.write_json(paths.code_file(name), {_name_file(path): files.digest_file(path) for path in parts})
    return 0


def of_study(study: StudySpec) -> list[Path]:
    """Files of `sites`, and of other packages, that measuring a study may run, sorted.

    Of engines and proxies the modules alone, of other rooms all files, since scripts are not imported.
    """
    measuring = (f"{PACKAGE.name}.measure.{path.stem}" for path in (PACKAGE / "measure").glob("*.py"))
    targets = (target.partition(":")[0] for target in filter(None, _list_targets(study)))
    reached = trace_imports([*ALWAYS, *measuring, *targets])
    kept = {*SITES.iterdir(), *chain.from_iterable(map(_list_beside, reached))}
    return sorted(path for path in kept if path.is_file() and "__pycache__" not in path.parts)


def _list_targets(study: StudySpec) -> list[str | None]:
    """Lines of the registry that a study names by its kind of site, engines and ways of access."""
    names = {study.engine.name, *(arm.engine.name for arm in study.arms.values() if arm.engine)}
    engines = [*map(descriptors.find_engine, filter(None, names))]
    proxies = [*filter(None, (descriptors.find_intermediary(arm.access) for arm in study.arms.values()))]
    targets: list[str | None] = [registry.SITES[study.site.kind]]
    targets += [part.code for part in (*engines, *proxies)]
    # On hosts and in a cluster others make an engine's cluster.
    if study.site.kind == "local":
        targets += [engine.cluster for engine in engines]
    if study.site.kind == descriptors.POD_SITE:
        targets += [proxy.pod for proxy in proxies]
    return targets


def _list_beside(path: Path) -> Iterable[Path]:
    """Files that count where a module is imported: in `sites` those of its room, elsewhere none of ours."""
    if not path.is_relative_to(PACKAGE):
        return [path]
    if not path.is_relative_to(SITES) or path.parent == SITES:
        return []
    room = path.relative_to(SITES).parts[0]
    return [path] if room in BY_MODULE else (SITES / room).rglob("*")


def trace_imports(roots: Iterable[str]) -> set[Path]:
    """Files of some modules and of those they import, directly or through others, within their packages."""
    reached: dict[str, Path | None] = {}
    waiting = list(roots)
    packages = frozenset({PACKAGE.name, *(name.partition(".")[0] for name in waiting)})
    while waiting:
        name = waiting.pop()
        if name in reached:
            continue
        reached[name] = path = _find_file(name)
        if path is None:
            continue
        parts = name.split(".")
        waiting += [".".join(parts[:depth]) for depth in range(1, len(parts))]
        waiting += list_imports(path.read_text(encoding="utf-8"), packages)
    return {path for path in reached.values() if path is not None}


@cache
def list_imports(source: str, packages: Iterable[str] = (PACKAGE.name,)) -> frozenset[str]:
    """Imports of packages anywhere in Python code; a name in a module may be a module too."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return frozenset(name for name in names if name.partition(".")[0] in packages)


def _find_file(module: str) -> Path | None:
    if module.partition(".")[0] != PACKAGE.name:
        with contextlib.suppress(ModuleNotFoundError):
            if (spec := find_spec(module)) is not None and spec.has_location and spec.origin is not None:
                return Path(spec.origin)
        return None
    base = PACKAGE.parent.joinpath(*module.split("."))
    return next((path for path in (base.with_suffix(".py"), base / "__init__.py") if path.is_file()), None)


def _name_file(path: Path) -> str:
    """A file's name as it is in any clone; of another package the last of its folders."""
    root = PACKAGE.parents[1]
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else "/".join(path.parts[-2:])
