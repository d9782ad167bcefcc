"""Terminal output at the end of the pipeline: the answer of each study, or its progress."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from benchbook.compare.stats.stalls import event_seconds
from benchbook.core.artifacts.findings import Findings
from benchbook.core.artifacts.meta_analysis import MetaAnalysis
from benchbook.core.util import files, paths
from benchbook.core.util.errors import BenchbookError
from benchbook.core.util.number_format import format_count, format_minutes
from benchbook.core.util.plural import as_sentence

if TYPE_CHECKING:
    from benchbook.evidence.archive_reader import ArchiveContents

FIVE_MINUTES = 5.0


def render_answer(study: str) -> list[str]:
    """Answer of a study in lines: table, cause, place among sessions, basis; empty without findings."""
    where = paths.study_paths(study)
    if not where.findings.is_file():
        return []
    from benchbook.show import bottleneck_section, evidence, results_view, setup_section, study_answer, tables

    findings = Findings.read(where.findings)
    blocks, (kept, due) = findings.blocks, count_progress(study)
    runs = f", {kept} runs" if kept == due else f", {kept} of {due} runs"
    most = results_view.WIDTH
    width = min(shutil.get_terminal_size((most, 24)).columns, most)
    why = [
        f"Where the time went: {bottleneck_section.name_place(cause, findings)}: {cause.sentence}."
        for cause in bottleneck_section.select_causes(findings)[:1]
    ]
    basis = f"{blocks.complete} of {format_count(blocks.planned, 'block')}{runs if due else ''}, "
    basis += f"{format_minutes(findings.machine_minutes)} of machine time"
    facts = files.read_json(where.facts)
    losses = tables.tabulate_losses(evidence.load_evidence(study)) if event_seconds(facts["arms"]) else []
    after = [*why, *describe_place(study), f"({basis})", *five_minutes(findings)]
    if loaded := setup_section.describe_loaded(facts):
        after.append(as_sentence(loaded))
    is_coloured = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    return [
        *study_answer.wrap_lines([f"{study}: {findings.question}"], width),
        *(line for lost in losses for line in ["", *study_answer.wrap_lines(lost.render_text(), width), ""]),
        "",
        *study_answer.render_session(findings, recorded_sessions(study), width, is_coloured),
        *study_answer.wrap_lines(after, width),
    ]


def recorded_sessions(study: str) -> MetaAnalysis | None:
    """Recorded sessions with the design of this clone's session, pooled; None if there are none."""
    from benchbook.compare.meta import recorded_sessions as recorded_results
    from benchbook.core.artifacts import meta_analysis, record

    index = record.read_index()
    if (here := _read_here(study)) is None or not index.studies[study].of_design(mine := here[1]):
        return None
    pooled = meta_analysis.read_pooled(study)
    is_pooled = pooled is not None and pooled.design == mine
    return pooled if is_pooled else recorded_results.pool_study(index, study, mine)


def _read_here(study: str) -> tuple[ArchiveContents, str] | None:
    """This clone's session and the digest of its design; None if none, or if the study is not recorded."""
    from benchbook.core.artifacts import design, record
    from benchbook.evidence import sessions
    from benchbook.evidence.archive_reader import ArchiveContents

    if study not in record.read_index().studies or not paths.study_paths(study).raw.is_dir():
        return None
    held = ArchiveContents(paths.find_root(), study)
    return held, design.compute_digest(held.study, held.facts.arms, sessions.list_methods(held))


def five_minutes(findings: Findings) -> list[str]:
    """Sentence on the effect of five minutes more on the widest interval; empty without any."""
    from benchbook.compare.meta.sample_size import half_width_after

    wide = [
        ((finding.high - finding.low) / 2, finding)
        for finding in findings.findings
        if finding.low is not None and finding.high is not None and finding.n >= 3
    ]
    if not wide or not findings.machine_minutes:
        return []
    half, widest = max(wide, key=lambda pair: pair[0])
    more = round(FIVE_MINUTES * findings.blocks.complete / findings.machine_minutes)
    then = half_width_after(half, widest.n, more, widest.level)
    of, widths = widest.names, f"from ± {100 * half:.1f} to ± {100 * then:.1f} %"
    effect = f"would narrow the widest interval ({of.treatment}, {of.workload}) {widths}"
    return [f"Another five minutes, about {more} more blocks, {effect}: raise plan.blocks."]


def describe_place(study: str) -> list[str]:
    """Sentences on the place of this session among those that are recorded of the same study."""
    from benchbook.compare.meta import meta_analysis, prediction_check
    from benchbook.core.artifacts import design, record
    from benchbook.evidence import sessions

    if (here := _read_here(study)) is None:
        return []
    (held, mine), recorded = here, record.read_index().studies[study]
    if not (alike := recorded.of_design(mine)):
        other = record.read_index().newest(study).pooled_results.design
        session = "; ".join(design.describe_differences(other, sessions.describe_design(held))[:3])
        return [f"None of the {len(recorded.sessions)} recorded sessions has this design: {session}."]
    if (pooled := recorded_sessions(study)) is None:
        return [f"{len(alike)} recorded sessions have this design; none of them can be read."]
    place = sessions.session_id(held), sessions.format_minute(sessions.read_start(held)), mine
    findings, facts = Findings.read(held.where.findings), held.facts
    this = meta_analysis.build_session(*place, findings, facts.arms, probes=facts.probes)
    session = prediction_check.describe_session(this, pooled)
    return [session] if session else []


def count_progress(study: str) -> tuple[int, int]:
    """Numbers of kept and of planned runs of a study; zeros without a schedule."""
    where = paths.study_paths(study)
    try:
        planned = set(files.read_csv(where.schedule, "run_id")["run_id"])
    except BenchbookError:
        return 0, 0
    kept = {path.name for path in where.raw.iterdir()} if where.raw.is_dir() else set()
    return len(planned & kept), len(planned)


def describe_end(how: str, studies: Sequence[str]) -> str:
    """Text after a failure or Ctrl-C on the runs kept, and that the same command goes on."""
    counts = {name: count_progress(name) for name in studies}
    unfinished = {name: (kept, planned) for name, (kept, planned) in counts.items() if 0 < planned != kept}
    kept_runs = "; ".join(
        f"{kept} of {planned} runs kept" + (f" ({name})" if len(studies) > 1 else "")
        for name, (kept, planned) in unfinished.items()
    )
    if not kept_runs:
        whole = [name for name, (_, planned) in counts.items() if planned]
        kept_runs = f"all runs of {', '.join(whole)} are kept" if whole else "nothing was measured yet"
    return f"{how}; {kept_runs}; the same command goes on"
