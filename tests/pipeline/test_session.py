"""A session against a real MariaDB: killed in the middle it goes on and is recorded; given up it counts."""

import json

import pytest

from tests import beside
from tests.pipeline.clone import BENCHBOOK, Clone, make

pytestmark = pytest.mark.server
# The arms of a block are kept together; a twin of one would only take longer.
GROUP = 2


def recorded(clone: Clone) -> dict:
    return json.loads((clone.path / "data/record/tiny/index.json").read_text())


def killed_after(clone: Clone, runs: int, *argv: str) -> str:
    """Begin a session and kill it when it has so many runs of its own; with none, when its first begins."""
    before, process = {*clone.runs()}, clone.start(*argv)

    def is_due() -> bool:
        begun = any((clone.data / "raw").glob("*.part"))
        return len({*clone.runs()} - before) >= runs if runs else begun

    try:
        assert beside.until(lambda: is_due() or process.poll() is not None, 300)
    finally:
        process.kill()
        said, _ = process.communicate()
    assert beside.until(lambda: not clone.processes(), 60)
    return said


@pytest.fixture
def clone(open_folder):
    clone = make(open_folder / "session")
    clone.study(blocks=2, discard_s=0.3, run_s=1, pilot_s=0, aa="null")
    return clone


@pytest.fixture
def benchbook(clone):
    with clone.fork(BENCHBOOK) as call:
        yield call


def test_what_was_begun_goes_on_and_ends_in_the_record_or_among_those_that_are_not(clone, benchbook):
    code, said = benchbook("session", "tiny", "--anyway")
    assert code == 2 and "the tree is edited: studies/tiny.yaml; commit" in said
    clone.commit()

    said = killed_after(clone, GROUP, "benchbook", "session", "tiny", "--anyway")
    before = clone.runs()
    assert len(before) == GROUP, said
    code, said = clone.run("benchbook", "session", "--anyway", "--minutes", "1")
    assert code == 0 and "tiny: started before, goes on" in said, said
    assert f"4 runs planned, {GROUP} there already" in said and {*before} <= {*clone.runs()}
    (session,) = recorded(clone)["sessions"]
    assert (clone.path / f"data/record/tiny/{session}.tar.xz").is_file()

    # What is recorded makes room: the next session draws its own seed and keeps no run.
    said = killed_after(clone, 0, "benchbook", "session", "tiny", "--anyway")
    assert "a session begins" in said and not {*before} & {*clone.runs()}
    code, said = benchbook("session", "--give-up", "tiny", "--because", "The host went away.")
    assert code == 0, said
    (missed,) = recorded(clone)["not_recorded"]
    assert missed["why"] == "The host went away." and missed["begun"] in said
    code, said = benchbook("session", "--give-up", "tiny", "--because", "Again.")
    assert code == 2 and "--give-up: tiny: " in said
