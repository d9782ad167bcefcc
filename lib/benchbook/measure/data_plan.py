"""Data of a study: tables, scripts and loading of each arm, derived once from the study file."""

from collections.abc import Mapping
from dataclasses import dataclass

from benchbook.core.study import custom_scripts, descriptors
from benchbook.core.study.custom_scripts import CustomScript
from benchbook.core.study.engines import cache_start, engine_of, is_analyzed, is_prewarmed
from benchbook.core.study.model import compute_fingerprint
from benchbook.core.study.study import TWIN, StudySpec
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
    return DataPlan(
        *(data.tables, data.table_size, data.seed, label, _checksum_kind(study), scripts, prepared),
        {name: _plan_arm(study, name) for name in study.arms},
    )


def _plan_arm(study: StudySpec, arm: str) -> ArmLoad:
    data = study.arms[arm].data
    index = "after" if data is None else data.index
    leaves_gaps = descriptors.find_engine(engine_of(study, arm).name).leaves_gaps
    try:
        warmed = is_prewarmed(study, arm), is_analyzed(study, arm), cache_start(study, arm)
    except BenchbookError:
        # A stage that only loads does not declare how arms are warmed.
        return ArmLoad(index, leaves_gaps)
    return ArmLoad(index, leaves_gaps, *warmed)


def _checksum_kind(study: StudySpec) -> str:
    """Kind of checksum: an engine's own if all columns are alike, else one that all can make."""
    of_arms = [engine_of(study, arm) for arm in study.arms]
    engines = {engine.name: descriptors.find_engine(engine.name) for engine in of_arms}
    names = [name for about in descriptors.TEXT for name in engines[of_arms[0].name].meanings[about]]
    # An engine's own is of bytes as they are kept, which the character set decides.
    texts = {str([*map(engine.settings.get, names)]) for engine in of_arms}
    are_alike = study.site.existing is None and len(texts) == 1
    if are_alike and len(engines) == 1 and all(engine.has_checksum for engine in engines.values()):
        return "own"
    kinds = {descriptors.MYSQL: "crc32", descriptors.PGSQL: "md5"}
    results = {kinds[engine.driver] for engine in engines.values()}
    return results.pop() if len(results) == 1 else "text"
