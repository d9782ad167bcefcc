"""Data of a study: tables, scripts and loading of each arm, derived once from the study file."""

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchbook.core.study import custom_scripts, descriptors
from benchbook.core.study.custom_scripts import CustomScript
from benchbook.core.study.engines import cache_start, engine_of, is_analyzed, is_prewarmed
from benchbook.core.study.model import compute_fingerprint
from benchbook.core.study.study import TWIN, StudySpec
from benchbook.core.study.study_sections import Engine
from benchbook.core.util.errors import BenchbookError


@dataclass(frozen=True)
class ArmLoad:
    """Loading of one arm's copy (`index`: `after` the rows or `before`) and its warming."""

    index: str
    leaves_gaps: bool
    is_prewarmed: bool = False
    is_analyzed: bool = False
    begins: str | None = None

    @property
    def options(self) -> list[str]:
        """Options of the loader for this arm; a server that leaves gaps between ids is given them."""
        results = ["--index-first=on"] if self.index == "before" else []
        return results + (["--auto-inc=off"] if self.leaves_gaps else [])


@dataclass(frozen=True)
class DataPlan:
    """Data that every server of a study holds before it is measured.

    `label` names the prepared copy: another data set is another copy. `checksum` is the kind of checksum that
    all engines of the study can make. `scripts` are custom scripts by workload, `prepared` those whose
    `prepare` makes tables, each file once.
    """

    tables: int
    table_size: int
    seed: int
    label: str
    checksum: str
    scripts: Mapping[str, CustomScript]
    prepared: tuple[CustomScript, ...]
    arms: Mapping[str, ArmLoad]

    def of_arm(self, arm: str) -> ArmLoad:
        """Loading and warming of an arm; the twin as its baseline."""
        return self.arms[arm.removesuffix(TWIN)]


def plan_data(study: StudySpec) -> DataPlan:
    """The data plan of a study; warming of arms only for stages that declare `warm_up`."""
    data, scripts = study.dataset, custom_scripts.load_scripts(study)
    prepared = tuple(custom_scripts.prepared_by(study))
    contents = [(script.digests(), dict(script.options)) for script in prepared]
    label = f"{data.tables}x{data.table_size}-seed{data.seed}"
    label += f"-own{compute_fingerprint(contents)}" if contents else ""
    engines = {arm: engine_of(study, arm) for arm in study.arms}
    traits = {arm: descriptors.find_engine(engine.name) for arm, engine in engines.items()}
    loads = {}
    for arm, model in study.arms.items():
        warmed: tuple[Any, ...] = ()
        # A stage that only loads does not declare how arms are warmed.
        with contextlib.suppress(BenchbookError):
            warmed = is_prewarmed(study, arm), is_analyzed(study, arm), cache_start(study, arm)
        index = "after" if model.data is None else model.data.index
        loads[arm] = ArmLoad(index, traits[arm].leaves_gaps, *warmed)
    kind = _choose_checksum(study, [*engines.values()], [*traits.values()])
    return DataPlan(data.tables, data.table_size, data.seed, label, kind, scripts, prepared, loads)


def _choose_checksum(
    study: StudySpec, engines: Sequence[Engine], traits: Sequence[descriptors.EngineDescriptor]
) -> str:
    """The kind of checksum that all engines of a study can make; `traits` are theirs, in their order."""
    first, is_ours = traits[0], study.site.existing is None
    # An engine's own checksum is of bytes as they are kept, which the character set decides.
    names = [name for about in descriptors.TEXT for name in first.meanings[about]]
    texts = {str([*map(engine.settings.get, names)]) for engine in engines}
    if first.has_checksum and is_ours and len(texts) == len({of.name for of in traits}) == 1:
        return "own"
    kinds = {descriptors.MYSQL: "crc32", descriptors.PGSQL: "md5"}
    ways = {kinds[of.driver] for of in traits}
    return ways.pop() if len(ways) == 1 else "text"
