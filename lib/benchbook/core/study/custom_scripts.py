"""A workload's own sysbench script: its place, the modules it needs, and its bytes.

To a run belong the script and every Lua module beside it that it requires, followed from module to module.
Modules that are not beside it, such as `oltp_common`, are sysbench's; its version is in the facts.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchbook.core.study import descriptors, registry
from benchbook.core.util import files, paths
from benchbook.core.util.errors import BenchbookError

LUA = ".lua"
MOST_BYTES = 4_000_000
COMMENT = re.compile(r"--\[(=*)\[.*?\]\1\]|--[^\n]*", re.DOTALL)
REQUIRED = re.compile(r"""\brequire\b\s*\(?\s*(?:(["'])([\w.-]+)\1(?!\s*\.\.))?""")
OPTIONS = "sysbench.cmdline.options"
DECLARED = re.compile(r"""(\w+)\s*=\s*\{\s*"([^"\n]*)"\s*,\s*("[^"\n]*"|[\w.]+)\s*\}""")
# A file that is read by these would be part of the run and not of its identity.
READERS = re.compile(r"\b(dofile|loadfile)\b")


@dataclass(frozen=True)
class CustomScript:
    """A script by its file, with the options that it is given."""

    workload: str
    path: Path
    options: Mapping[str, Any]

    @property
    def folder(self) -> Path:
        """Working directory of sysbench, so that the script finds its modules."""
        return self.path.parent

    def texts(self) -> dict[str, str]:
        """Script and modules by name, the script first; BenchbookError names those that can't be kept."""
        results: dict[str, str] = {}
        waiting = [self.path]
        while waiting:
            file = waiting.pop(0)
            if file.name in results:
                continue
            results[file.name] = text = self._read(file)
            waiting += self._required(file, COMMENT.sub("", text))
        return results

    def declared(self) -> dict[str, tuple[str, str]]:
        """Options that it declares by name: the default as it is written, and the purpose."""
        code = "\n".join(COMMENT.sub("", text) for text in self.texts().values())
        results = DECLARED.findall(code.partition(OPTIONS)[2])
        return {name: (default, about) for name, about, default in results if default not in ("nil", '""')}

    def digests(self) -> dict[str, str]:
        """SHA-256 of script and modules by name."""
        return {name: files.digest_file(self.folder / name) for name in self.texts()}

    def _read(self, file: Path) -> str:
        try:
            if file.stat().st_size > MOST_BYTES:
                raise BenchbookError(f"{self._key}: {file.name}: more than 4 MB; this is no script")
            # As it stands: line ends belong to its digest.
            return file.read_bytes().decode("utf-8")
        except FileNotFoundError:
            remedy = "fetch it, or write its path from the repository's root"
            raise BenchbookError(f"{self._key}: {file}: no such file; {remedy}") from None
        except (OSError, UnicodeDecodeError) as error:
            raise BenchbookError(f"{self._key}: {file.name}: can't be read as UTF-8 text: {error}") from None

    def _required(self, file: Path, code: str) -> list[Path]:
        place = f"{self._key}: {file.name}"
        if reader := READERS.search(code):
            remedy = "put that code beside it as a module and `require` it by name"
            raise BenchbookError(f"{place} calls {reader[1]}, so what it runs can't be known; {remedy}")
        names = [match[2] for match in REQUIRED.finditer(code)]
        if None in names:
            remedy = 'write the name, as in require("module")'
            raise BenchbookError(f"{place} requires a module whose name is computed; {remedy}")
        return [beside for name in names if (beside := self.folder / f"{name}{LUA}").is_file()]

    @property
    def _key(self) -> str:
        return f"workloads.{self.workload}.script"


def is_own(script: str) -> bool:
    """Tell a script's file from the name of one that sysbench ships."""
    return script.endswith(LUA)


def load_scripts(study: Any) -> dict[str, CustomScript]:
    """Own scripts of a study by workload; empty for a stage that declares no workloads."""
    try:
        workloads = study.workloads
    except BenchbookError:
        return {}
    return {
        name: CustomScript(name, (paths.find_root() / workload.script).resolve(), workload.options)
        for name, workload in workloads.items()
        if workload.script is not None and is_own(workload.script)
    }


def prepared_by(study: Any) -> list[CustomScript]:
    """Scripts with a `prepare` for tables: each file once, with its first workload's options."""
    by_path: dict[Path, CustomScript] = {}
    for script in load_scripts(study).values():
        by_path.setdefault(script.path, script)
    return list(by_path.values())


def find_refusals(study: Any) -> Iterator[str]:
    """Reasons against a study's own scripts, each as `path.to.key: fault; remedy`."""
    for name, workload in study.workloads.items():
        if workload.script is None or not is_own(workload.script):
            if workload.options:
                why = "sysbench's scripts have keys of the workload"
                yield f"workloads.{name}.options: only for a script of your own; {why}"
            continue
        where = f"workloads.{name}.script"
        if workload.script.startswith("/"):
            why = "another machine lacks this path"
            yield f"{where}: {workload.script}: {why}; write it from the repository"
        able = [text for text, of in descriptors.load_engines().items() if of.runs_own_scripts]
        for engine in sorted(registry.engine_names(study) - {*able}):
            why = f"{engine}, whose tables and counters own scripts can't be held to"
            yield f"{where}: not supported with engine.name: {why}; write name: {' or '.join(able)}"
        for arm, setting in study.arms.items():
            if setting.clients > 1:
                yield f"{where}: not supported with arms.{arm}.clients: {setting.clients}; write 1"
        if study.warm_up.pilot_s < 1:
            yield f"{where}: its statements are learned from pilots; set warm_up.pilot_s"
