"""Ten causes are planted, each in an arm of a real study: pages name nine of them, and never another one."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from benchbook.core.artifacts.bottlenecks import Cause
from benchbook.core.study.study import StudySpec
from benchbook.show import bottleneck_section
from tests.pipeline import planted

pytestmark = [pytest.mark.server, pytest.mark.slow, pytest.mark.alone]
# What a page may say of a part in few words, where that part is what was slowed.
SAYS = {
    "server": r"^server CPU-bound[^;:]*; its CPU|most of it (server CPU|(for|time in) the server)",
    "client": r"\bclient[^(]* \([\d.]+ µs|^client CPU-|most of it (client CPU|(for|time in) the client)",
    "proxy": r"most of it (the proxy's|proxy CPU|waiting for the proxy)|client and proxy[^(]* \([\d.]+ µs",
    "disk": r"pages not in its memory|bytes from the disk",
}
UPDATES = {"oltp_update_non_index": {"rand_type": "uniform"}}
RELAXED = {"innodb_buffer_pool_size": "96M", "innodb_log_file_size": "8M"}
RELAXED |= {"innodb_flush_log_at_trx_commit": 2}
Planting = Callable[[pytest.MonkeyPatch, Path], object]


@dataclass(frozen=True)
class Plant:
    """What is planted, the part that a page has to name, the study, and µs a query if they are known."""

    what: str
    part: str
    study: Callable[[], StudySpec] = field(default=lambda: planted.asked(planted.ARMS))
    plant: Planting = field(default=lambda patch, lab: True)
    us: float | None = None


def _slow(part: str, **how: int) -> Planting:
    return lambda patch, lab: planted.slowed(patch, lab, part, **how)


def _trigger(body: str) -> Planting:
    return lambda patch, lab: planted.triggered(patch, lab, 2, body)


def _updates() -> StudySpec:
    return planted.asked(planted.ARMS, workloads=UPDATES, engine={"settings": RELAXED})


def _small_buffer(rows: int) -> Callable[[], StudySpec]:
    return lambda: planted.asked(planted.SMALL_BUFFER, workloads=planted.ranges(rows))


def _small_pool() -> StudySpec:
    """Return a study whose planted arm has memory for a tenth of the data."""
    small = {"innodb_buffer_pool_size": "12M", "innodb_lru_scan_depth": 100}
    arms = {"plain": {}, "planted": {"engine": {"settings": small}}}
    data = {"tables": 2, "table_size": 250_000}
    return planted.asked(arms, engine={"settings": planted.OF_DISK}, dataset=data)


PLANTS = (
    Plant("a trigger that computes", "server", _updates, _trigger("SET @x = BENCHMARK(300, MD5(NEW.c))")),
    Plant("a trigger that waits", "server", _updates, _trigger("SET @x = SLEEP(0.0003)")),
    Plant("a server that computes at each send", "server", plant=_slow("server", BURN_US=60), us=60),
    Plant("a client that computes at each send", "client", plant=_slow("client", BURN_US=60), us=60),
    Plant("a client that waits at each send", "client", plant=_slow("client", SLEEP_US=150)),
    Plant("a client that computes now and then", "client", plant=_slow("client", BURN_US=600, SLOW_EACH=10)),
    Plant("a proxy's buffer of 1 KiB, results of 1,000 rows", "proxy", _small_buffer(1000)),
    Plant("a proxy's buffer of 1 KiB, results of 200 rows", "proxy", _small_buffer(200)),
    Plant("a pool that is empty when a run begins", "disk", planted.cold),
    Plant("a pool for a tenth of the data", "disk", _small_pool),
)  # fmt: skip


def select_causes(plant: Plant, base: Path) -> dict[int, Cause]:
    """Measure a plant, and return by level the cause that its page names.

    Where the machine is too busy for a page to name anything, it is measured once more.
    """
    for number in ("first", "second"):
        with planted.laboratory() as lab, pytest.MonkeyPatch.context() as patch:
            begun = plant.plant(patch, lab)
            findings = planted.measured(plant.study(), lab, base / number)
        assert begun, f"{plant.what}: was not planted"
        if causes := {cause.threads: cause for cause in bottleneck_section.select_causes(findings)}:
            break
    return causes


def test_nine_of_ten_planted_causes_are_named_and_no_wrong_one(tmp_path: Path):
    named, wrong = 0, []
    for number, plant in enumerate(PLANTS, start=1):
        causes = select_causes(plant, tmp_path / str(number))
        right = {level for level, cause in causes.items() if re.search(SAYS[plant.part], cause.short or "")}
        if plant.us and 1 in causes:
            assert plant.us - 10 < causes[1].predicted.value < plant.us + 20
        named += bool(right)
        wrong += [f"{plant.what}, {level} threads: {causes[level].short}" for level in causes.keys() - right]
        short = {level: cause.short for level, cause in causes.items()}
        print(f"PLANTED {number}: {plant.what}: {bool(right)} {short}")
    print(f"PLANTED causes named: {named} of {len(PLANTS)}; wrong: {len(wrong)}")
    assert named >= len(PLANTS) - 1 and not wrong, wrong
