"""What each check says of printed tables, held in a golden file."""

from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from benchbook.compare.bottlenecks import operational_laws
from benchbook.compare.claims import consistency
from benchbook.compare.stats import scaling
from benchbook.core.published.source import Number
from tests.compare.cases import assert_cases
from tests.compare.claims.test_consistency import LINE, cells
from tests.found import runs as runs_of
from tests.goldens import assert_golden

DATA = Path(__file__).parents[2] / "data"
MARKS = {True: "passed", False: "failed", None: "open"}


def read_cells(tables: dict[str, Any], half_units: dict[str, float]) -> list[Number]:
    numbers = cells([
        (*place.split(), threads, metric, str(text))
        for place, metrics in tables.items()
        for metric, by_threads in metrics.items()
        for threads, text in by_threads.items()
    ])  # fmt: skip
    return [one._replace(half_unit=half_units.get(one.metric, one.half_unit)) for one in numbers]


def freeze(value: Any) -> Any:
    """A list of lists as tuples, which checks take into sets."""
    return tuple(map(freeze, value)) if isinstance(value, list) else value


def test_each_check_says_what_it_found_and_how_many_cells_agree():
    lines = []
    for name, cases in YAML(typ="safe").load(DATA / "checked_tables.yaml").items():
        check = next(
            getattr(room, name) for room in (operational_laws, consistency, scaling) if hasattr(room, name)
        )
        lines.append(f"\n{name}")
        for case in cases:
            found = check(
                read_cells(case["cells"], case.get("half_units", {})), *map(freeze, case.get("given", ()))
            )
            said = [describe(one) for one in found]
            lines += [f"  {'-' if one is said[0] else ' '} {one}" for one in said]
    assert_golden("checked_tables.txt", "\n".join(lines).lstrip() + "\n")


def test_our_own_runs_pass_through_the_same_checks():
    def check(case: dict[str, Any]) -> list[str]:
        runs = [LINE | {"run_id": f"r{at}", "block": at} | run for at, run in enumerate(case["runs"], 1)]
        return [f"{one.check}: {describe(one)}" for one in consistency.of_runs(runs_of(runs))]

    assert_cases("own_runs", check)


def describe(check: Any) -> str:
    return f"{MARKS[check.passed]}, {check.where}{of_row(check)}: {check.detail}"


def of_row(check: Any) -> str:
    """Tables and row that a page links a check to."""
    row = check.plain.get("row")
    return f" ({', '.join(check.tables)}{'' if row is None else f', row {row}'})" if check.tables else ""
