"""A study of the lab says what changes at the sizes of its source, and nothing but sizes changes."""

import re

import pytest

from benchbook.core.study import descriptors, load, study_variants
from benchbook.core.study.engines import engine_of
from benchbook.core.study.study import StudySpec
from benchbook.core.util import paths
from tests.house import tree

SUFFIX = "-full"
# By their text: each worker collects all tests, and would parse all studies for these names.
FULL = sorted(
    f"{name}{SUFFIX}"
    for name in paths.list_studies()
    if name.startswith("lab-")
    and f"\n{study_variants.SECTION}:" in paths.study_paths(name).file.read_text("utf-8")
)
# The sources have no latency at a fixed rate, no run beyond 500 connections, no cold start, no pod network
# with writes, no system that one machine can have, no level of one thread, and no Unix socket beside TCP.
WITHOUT = {
    *("lab-latency", "lab-ladder", "lab-connections", "lab-disk", "lab-network-workloads", "lab-system"),
    *("lab-threads", "lab-socket"),
}
MINUTES = 20

full = pytest.mark.parametrize("name", FULL)


# The source whose sizes a study has that puts none of its claims to the test.
SIZED_AS = {"lab-howto-full": ("tidb-sysbench-howto",)}


def named(one: StudySpec) -> set[str]:
    """Return the sources whose claims a study answers or illustrates."""
    shown = [claim for arm in one.arms.values() for claim in arm.illustrates]
    return {claim.split("/")[0] for claim in (*one.claims, *shown)}


def test_a_study_of_the_lab_with_a_section_of_sizes_has_the_one_of_its_source_there():
    labs = (study for study in paths.list_studies() if study.startswith("lab-"))
    assert sorted(name for study in labs for name in study_variants.variant_names(study)) == FULL


def test_every_study_of_the_lab_that_answers_a_source_has_its_sizes():
    studies = {name for name in paths.list_studies() if name.startswith("lab-")}
    # No source has a cluster on one machine; on hosts it is a study of its own.
    asked = {name for name in studies - WITHOUT if not (s := tree.study(name)).engine.cluster and named(s)}
    assert {f"{name}{SUFFIX}" for name in asked} <= set(FULL)


def test_no_study_is_another_one_at_another_size():
    """A size is a section of its study; a second file would have to be kept the same by hand."""
    written = paths.list_studies()
    assert not [name for name in written if study_variants.find_origin(name) is not None]
    full = (tree.ROOT / "studies").rglob("*-full.yaml")
    assert not [path for path in full if not tree.is_ignored(str(path))]


@full
def test_a_full_variant_asks_the_same_of_the_same_arms(name: str):
    small, whole = tree.study(name.removesuffix(SUFFIX)), tree.study(name)
    assert whole.workloads == small.workloads
    assert whole.engine.name == small.engine.name
    # A stand-in that is another product illustrates no claim; at full size the product itself does.
    assert named(whole) >= named(small)
    assert {arm.network for arm in whole.arms.values()} == {arm.network for arm in small.arms.values()}
    assert whole.plan.seed == small.plan.seed
    # Short runs in turns come in more blocks; at either size a verdict must be looked for at the last one.
    for blocks in {whole.plan.blocks, small.plan.blocks} - {1}:
        assert blocks in load.load_params("analysis").analysis.for_blocks(blocks).looks
    if set(whole.arms) == set(small.arms):
        for arm in small.arms:
            for key in ("load", "qos", "capture", "neighbour", "zones", "engine", "data"):
                assert getattr(small.arms[arm], key) == getattr(whole.arms[arm], key)


@full
def test_its_sizes_are_those_that_the_source_prints(name: str):
    whole = tree.study(name)
    (origin,) = named(whole) or SIZED_AS[name]
    options = tree.document(origin).sysbench.options
    assert (whole.dataset.tables, whole.dataset.table_size) == (options["tables"], options["table-size"])
    if "time" in options:
        assert whole.plan.run_s == options["time"]
    assert set(whole.threads) <= tree.printed_levels(origin) | {options.get("threads")}


@full
def test_the_small_one_is_done_in_twenty_minutes(name: str):
    from benchbook.plan import schedule

    small = tree.study(name.removesuffix(SUFFIX))
    seconds = schedule.estimate_seconds(small, schedule.sketch_runs(name, small))
    assert seconds + schedule.pilot_seconds(small) <= 60 * MINUTES


def test_engines_are_compared_with_the_same_memory_durability_log_and_isolation():
    asked = tree.study("lab-engines")
    for arm in asked.arms:
        engine = engine_of(asked, arm)
        meanings = descriptors.find_engine(engine.name).meanings
        # All have UTF-8; of what is recorded the report says that MariaDB's order of text is another.
        alike = [one for about, one in meanings.items() if about not in descriptors.TEXT]
        assert engine.settings == {name: value for one in alike for name, value in one.items()}, arm


def test_who_opens_the_folder_sees_a_dozen_questions():
    """Beside them quick, the study that everybody begins with, and the page that leads on."""
    folder = tree.ROOT / "studies"
    known = {name.parts[1] for name in tree.tracked() if name.parts[0] == "studies"}
    assert len(known) <= 16 and known - {"quick.yaml", "README.md"} == {
        name for name in known if (folder / name).is_dir()
    }
    assert not [name for name in tree.tracked() if name.parts[0] == "studies" and len(name.parts) > 3]


def test_the_readme_leads_from_each_question_to_its_folder_and_a_study_in_it():
    text = (tree.ROOT / "README.md").read_text(encoding="utf-8")
    row = r"^\|.*\| \[`([^`]+)`\]\(studies/([^)]+)\) \| `make repro STUDY=([^`]+)` \|$"
    rows = re.findall(row, text, re.M)
    folders = {path.name for path in (tree.ROOT / "studies").iterdir() if path.is_dir()}
    assert sorted(folder for _, folder, _ in rows) == sorted(folders)
    for shown, folder, name in rows:
        assert shown == folder and paths.study_paths(name).file.parent.name == folder


def test_a_study_names_its_schema_from_where_it_lies():
    for name in paths.list_studies():
        file = paths.study_paths(name).file
        (named,) = re.findall(r"^# yaml-language-server: \$schema=(\S+)$", file.read_text(), re.M)
        assert (file.parent / named).resolve() == tree.ROOT / "schemas" / "study.schema.json"
