"""Caveats on a study's answer, as a list: the A/A pair first, every warning last."""

import re
import statistics
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchbook.compare.inference.caveats import FISHER_P, leaves_zero_out
from benchbook.compare.stats import interleaved_runs, pairs, tolerance
from benchbook.compare.stats.equivalence import MARGIN
from benchbook.compare.text import labels
from benchbook.core.artifacts.findings import Findings
from benchbook.core.util import number_format, paths
from benchbook.core.util.plural import as_sentence
from benchbook.show import templating
from benchbook.show.evidence import ReportInputs
from benchbook.show.markup import Html

# In the root of a recorded session: the values that came out otherwise than recorded, a line each.
DIFFERS = "differs.txt"

_LOOK = re.compile(r"; (?=\d{4}-\d\d-\d\d )")
_SHORT = re.compile(r"a pilot of (\d+) s is too short to judge; it needs (\d+) s")


@dataclass(frozen=True)
class CaveatPoint:
    """One point, and a flag for those that ask for care."""

    name: str
    text: str
    is_care: bool = False

    @property
    def lines(self) -> list[str]:
        """The text, with each session that was looked at before on a line of its own."""
        return _LOOK.split(self.text)


def report_differences() -> list[CaveatPoint]:
    """Caveat on values of a recorded session that came out otherwise here; none for other studies."""
    file = paths.find_root() / DIFFERS
    if not file.is_file():
        return []
    messages = file.read_text(encoding="utf-8").splitlines()
    first = "; ".join(messages[:3])
    more = f"; and {len(messages) - 3} more" if len(messages) > 3 else ""
    return [CaveatPoint("Not as recorded", f"Made again here, values differ: {first}{more}.", True)]


def render_caveats(report_inputs: ReportInputs, more: Sequence[CaveatPoint] = ()) -> Html:
    """Write the caveats: important ones in a line, each to be opened, then the methods, folded."""
    return templating.render_template("doubts.html.j2", doubts=build_caveats(report_inputs, more))


def build_caveats(report_inputs: ReportInputs, more: Sequence[CaveatPoint] = ()) -> list[CaveatPoint]:
    """Every point, in the words of `points.j2`; `more` are doubts that the findings don't know."""
    findings, runs, warm_up = report_inputs.findings, report_inputs.runs, report_inputs.warm_up or {}
    caveat_points: list[CaveatPoint] = []

    def point(name: str, is_care: object = False, *, caller: Callable[[], str]) -> str:
        caveat_points.append(CaveatPoint(name, re.sub(r"[ \n]+", " ", caller()).strip(" "), bool(is_care)))
        return ""

    voids, is_sparse = findings.voids, findings.turns and interleaved_runs.lacks_percentiles(runs)
    inputs = {
        "margin": MARGIN,
        "stopped": _list_stopped(findings),
        "lost": interleaved_runs.ABSENT if is_sparse else "",
        "median": statistics.median,
        "runs": len(runs),
        "ran": {*runs.arm},
        "lengths": [
            number_format.join_words([f"{length:g}" for length in sorted(runs[column].unique())], "or")
            for column in ("run_s", "discard_s")
        ],
        "short": _find_short_pilots(warm_up),
        # Without a test nothing shows that the arms were voided alike.
        "are_apart": voids.fisher_p is None or not tolerance.is_above(voids.fisher_p, FISHER_P),
        "note": as_sentence(voids.note),
        "failed": Counter(check.check for check in findings.checks if check.passed is False),
        "leaves_zero_out": leaves_zero_out,
        "span": pairs.format_span,
    }
    templating.render_text("points.j2", point=point, found=findings, warm_up=warm_up, more=more, **inputs)
    return caveat_points


def _list_stopped(findings: Findings) -> dict[str, list[str]]:
    """Arms by the parts that stand still between their turns; nothing of a study without turns."""
    stopped: dict[str, list[str]] = {}
    for arm, parts in findings.turns.stopped.items() if findings.turns else ():
        if not arm.endswith(labels.AGAIN):
            name = findings.names.arms.get(arm, arm)
            stopped.setdefault(number_format.join_words(parts), []).append(name)
    return stopped


def _find_short_pilots(warm_up: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """Length and length needed of each pilot; none where one was long enough: then others are no reason."""
    pilots = [_SHORT.match(str(item.get("reason"))) for item in warm_up.get("pilots") or ()]
    short = [pilot.groups() for pilot in pilots if pilot]
    return short if len(short) == len(pilots) else []
