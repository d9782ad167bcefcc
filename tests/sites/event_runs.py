"""One run with an event in its middle on any site, and its loss, counted in sysbench's own output."""

import re
from pathlib import Path
from typing import Any

from benchbook.measure import dataset, servers
from benchbook.measure.data_plan import plan_data
from benchbook.read import validity
from tests import walks

PLAN = {"seed": 3, "blocks": 1, "order": "runs", "discard_s": 0, "run_s": 48}
THREADS = 2
SECOND = re.compile(r"^\[ (\d+)s \] .* tps: ([\d.]+) ", re.MULTILINE)
IGNORED = re.compile(r"ignored errors: +(\d+)")


def sections(workload: str) -> dict[str, Any]:
    """Sections of a study with one long run of each arm."""
    return {"aa": None, "workloads": {workload: {}}, "threads": (THREADS,), "plan": PLAN}


def judge_event_run(site: Any, arm: str, into: Path) -> validity.Judgement:
    """Load the data, and make and judge the run of an arm."""
    dataset.load_data(site, plan_data(site.study))
    servers.put_back(site, plan_data(site.study))
    return walks.judge(walks.measured(site, site.study, arm, into))


def must_tell_the_loss(judged: validity.Judgement, event: dict[str, Any], silent_s: tuple[int, int]) -> None:
    """The run is valid, its event came when planned, and its warning has the loss that the log shows."""
    assert (judged.reasons, judged.status) == ([], "valid"), judged.reasons
    seen, out = judged.evidence.observed, judged.evidence.out
    done = seen["arrangement"]["event"]
    assert abs(done["killed_s"] - seen["started_monotonic_s"] - event["at_s"]) < 1.5
    silent = [int(second) for second, tps in SECOND.findall(out) if float(tps) == 0]
    assert silent_s[0] <= len(silent) <= silent_s[1]
    assert all(event["at_s"] < second < event["at_s"] + 12 for second in silent)
    lost = int(IGNORED.findall(out)[-1])
    if event["what"] == "set":
        assert lost == 0
    else:
        assert done["pid_before"] != done["pid_after"]
        # Each thread lost the transaction that it was in, and no more.
        assert THREADS <= lost <= 4 * THREADS
    (told,) = (warning for warning in judged.warnings if warning.startswith("planned: the server was"))
    assert f"; {lost} transaction" in told
