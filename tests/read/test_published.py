"""Published numbers arrive as printed; a mistake in a source is told with file, line, value, remedy."""

import re
import shutil
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from benchbook.compare.claims.audit import audit_source
from benchbook.core.published import source
from benchbook.core.published.claim import ClaimSpec
from benchbook.core.published.source import Published
from benchbook.core.util import paths
from benchbook.core.util.errors import InputErrors
from benchbook.read import published
from tests import sources as shared
from tests.goldens import assert_golden

DATA = Path(__file__).parents[1] / "data" / "sources"


@pytest.fixture
def sixth(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A source made of data alone, in a repository of its own."""
    monkeypatch.setenv("BENCHBOOK_ROOT", str(tmp_path))
    return Path(shutil.copytree(DATA / "sixth", tmp_path / "data" / "published" / "sixth"))


def change(file: Path, old: str, new: str) -> None:
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new, 1), encoding="utf-8")


def mistakes(name: str = "sixth") -> list[str]:
    with pytest.raises(InputErrors) as caught:
        published.load_source(name)
    return caught.value.errors


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('versions: {server: "1"}', "versions: {server: null}"),
        ("hardware: {machine: one}", "hardware: {machine: null}"),
        ("hardware: {machine: one}", "hardware: null"),
        ("configuration: {}", "configuration: {server: null}"),
        ("sysbench: null", "sysbench: {version: null, options: null}"),
        ("conduct: {}", "conduct: null"),
        ('slow: {means: "the slow one"}', "slow: {means: null, settings: {cache: null}}"),
        ("reads: {statements: 1}", "reads: null"),
        ('stands: "First page"', "stands: null"),
        ('stands: "Last page"', "stands: null\n    where: null"),
    ],
)
def test_what_a_document_does_not_say_is_null(sixth: Path, old: str, new: str):
    change(sixth / "source.yaml", old, new)
    claims = {one.id: one.verdict for one in audit_source(published.load_source("sixth")).claims}
    assert claims == {"sixth/faster": "holds"}


def test_a_sixth_source_is_data_alone(sixth: Path):
    cells = published.load_source("sixth").cells
    assert cells.loc[(cells["arm"] == "fast") & (cells["metric"] == "qps"), "value"].tolist() == [2000, 3900]


def test_mistakes_are_told_with_file_line_value_and_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    published_folder = paths.source_paths("mysql-kubernetes").published.parent
    monkeypatch.setenv("BENCHBOOK_ROOT", str(tmp_path))
    answers = []
    for place, old, new in YAML(typ="safe").load(DATA / "mistakes.yaml"):
        name, file = place.split("/")
        folder = tmp_path / "data" / "published" / name
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(DATA / name if (DATA / name).is_dir() else published_folder / name, folder)
        text = (folder / file).read_text(encoding="utf-8") if old else ""
        assert old in text
        (folder / file).write_text(text.replace(old, new), encoding="utf-8")
        answers.append("".join(f"{line.removeprefix('data/published/')}\n" for line in mistakes(name)))
    assert_golden("refused_sources.txt", "\n".join(answers))


def test_all_mistakes_are_told_at_once(sixth: Path):
    change(sixth / "main.csv", "1,slow,1000", "1,slow,1k")
    change(sixth / "main.csv", "1.05", "1,05")
    (sixth / "stray.csv").write_text("x\n1\n", encoding="utf-8")
    assert len(mistakes()) >= 3
    assert any(line.startswith("data/published/sixth/stray.csv: ") for line in mistakes())


def test_rows_in_falling_order_are_carried_if_the_document_prints_them_so(sixth: Path):
    change(sixth / "main.csv", "1,slow,1000", "3,slow,1000")
    change(
        sixth / "source.yaml",
        "    at: {workload: reads}",
        "    at: {workload: reads}\n    is_unordered: true",
    )
    assert len(published.load_source("sixth").cells) == 8


def test_units_become_those_of_the_metric_s_name(sixth: Path):
    change(sixth / "source.yaml", "unit: 1/s", "unit: 1000/s")
    cells = published.load_source("sixth").cells
    assert cells.loc[cells["metric"] == "qps", "value"].tolist() == [1e6, 2e6, 1.9e6, 3.9e6]
    assert cells.loc[cells["metric"] == "qps", "printed"].tolist() == ["1000", "2000", "1900", "3900"]
    # All four end in two zeros: known to 50 thousands.
    assert set(cells.loc[cells["metric"] == "qps", "half_unit"]) == {50_000}


def test_arms_may_stand_side_by_side_in_one_row(sixth: Path):
    """threads | slow | fast: the column says the arm."""
    (sixth / "main.csv").write_text("threads,slow,fast\n1,1000,2000\n2,1900,3900\n", encoding="utf-8")
    text = (sixth / "source.yaml").read_text(encoding="utf-8")
    text = re.sub(
        r"  arm: \{role: key\}\n  qps.*\n  latency.*\n",
        "  slow: {role: metric, metric: qps, unit: 1/s, at: {arm: slow}}\n"
        "  fast: {role: metric, metric: qps, unit: 1/s, at: {arm: fast}}\n",
        text,
    )
    text = text.replace("[threads, arm, qps, latency_avg_ms]", "[threads, slow, fast]")
    (sixth / "source.yaml").write_text(text, encoding="utf-8")
    cells = published.load_source("sixth").cells
    assert cells[["arm", "threads", "value"]].to_numpy().tolist() == [
        ["slow", 1, 1000], ["fast", 1, 2000], ["slow", 2, 1900], ["fast", 2, 3900],
    ]  # fmt: skip


def test_arms_that_look_like_numbers_stay_what_they_are_under_any_heading(sixth: Path):
    """1.20 is a release, and neither 1.2 nor a number."""
    file = sixth / "source.yaml"
    for old, new in (
        ("  slow: {", '  "1.20": {'),
        ("  fast: {", '  "1.21": {'),
        ("  arm: {role: key}", "  release: {role: key, metric: arm}"),
        ("[threads, arm,", "[threads, release,"),
        ("{arm: slow}", '{arm: "1.20"}'),
        ("{arm: fast}", '{arm: "1.21"}'),
    ):
        change(file, old, new)
    table = (sixth / "main.csv").read_text().replace("arm", "release")
    (sixth / "main.csv").write_text(table.replace("slow", "1.20").replace("fast", "1.21"))
    assert set(published.load_source("sixth").cells["arm"]) == {"1.20", "1.21"}
    change(sixth / "main.csv", "1,1.20,", "1,1.2,")
    place, heading, value, *rest = mistakes()[0].split(": ")
    assert (place, heading, value) == ("data/published/sixth/main.csv:2", "release", "1.2")
    assert "did you mean 1.2" in ": ".join(rest)


def test_a_claim_has_the_name_that_a_study_gives_it():
    assert (
        published.resolve_claims(["tidb-kubernetes/host-network"])["tidb-kubernetes/host-network"].metric
        == "qps"
    )


@pytest.fixture(scope="module")
def five() -> dict[str, Published]:
    return shared.every()


def value(source: Published, metric: str, **place: object) -> float:
    cells = source.cells[source.cells["metric"] == metric]
    for key, wanted in place.items():
        cells = cells[cells[key] == wanted]
    assert len(cells) == 1
    return cells["value"].iloc[0]


def test_numbers_of_each_source_against_the_documents(five: dict[str, Published]):
    """One cell a source, looked up by hand in the document."""
    assert value(five["tidb-kubernetes"], "qps", table="load-balancer", threads=900) == 438730.81
    assert value(five["tidb-kubernetes"], "latency_p95_ms", table="read-write", threads=1500) == 344.082
    assert value(five["mysql-kubernetes"], "tps", table="best-effort", second=610) == 20196.89
    assert (
        value(five["tiproxy-haproxy"], "cpu_proxy_pct", table="haproxy-result-rows", range_size=1000) == 240
    )
    assert (
        value(five["tidb-upgrade"], "latency_p99_ms", table="write-only-versions", arm="2.1.8", threads=1536)
        == 493.24
    )
    assert value(five["tidb-sysbench-howto"], "latency_max_ms", table="update-index", threads=96) == 4787.14


def test_threads_are_processes_times_threads_of_each(five: dict[str, Published]):
    cells = five["tidb-upgrade"].cells
    assert sorted(cells["threads"].dropna().unique()) == [3 * 64, 3 * 256, 3 * 512]


def test_printed_report_lines_go_through_the_parser_of_our_own_logs(five: dict[str, Published]):
    cells = five["mysql-kubernetes"].cells
    # 25 lines, 8 numbers each: tps, qps, r, w, o, percentile, errors, reconnects.
    assert len(cells) == 25 * 8
    assert set(cells["arm"]) == {"bare-metal", "best-effort", "guaranteed"}


def test_half_of_the_last_place_follows_the_column(five: dict[str, Published]):
    """23300, 31400 end in zeros: known to 50. 2.3 stands among 2.30: known to 0.005."""
    upgrade, kubernetes = five["tidb-upgrade"].cells, five["tidb-kubernetes"].cells
    assert set(
        upgrade.loc[(upgrade["table"] == "write-only") & (upgrade["metric"] == "qps"), "half_unit"]
    ) == {50}
    dropped = kubernetes[(kubernetes["table"] == "n1-machines") & (kubernetes["printed"] == "2.3")]
    assert dropped["half_unit"].tolist() == [0.005]


def test_a_table_stands_for_the_arm_and_the_workload_that_it_is_about():
    """Somebody else's study has no such table; a claim on it is put to the arms and the workload."""
    loaded = source.load_source("tiproxy-haproxy")

    def told(baseline: object, treatment: object) -> ClaimSpec:
        claim = ClaimSpec.model_validate(
            {
                "kind": "effect", "claim": "It costs a third.", "stands": "Summary", "metric": "qps",
                "baseline": {"table": baseline}, "treatment": {"table": treatment},
                "band": {"point": "-30 %"},
            }
        )  # fmt: skip
        return source.claim_for_study(loaded.model_copy(update={"claims": {"asked": claim}}), "asked")

    one = told("haproxy-read-only", "tiproxy-read-only")
    assert (one.baseline, one.treatment) == ({"arm": "haproxy"}, {"arm": "tiproxy"})
    assert one.cells == {"workload": "oltp_read_only"}
    # Two workloads are no contrast of two arms.
    assert told("haproxy-read-only", "tiproxy-read-write").baseline == {"table": "haproxy-read-only"}
