"""A study as an object: its tables, findings, single runs and progress; and each finding."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter
from pathlib import Path
from typing import Any

import pandas as pd

from benchbook.api.columns import document_table, of_parts
from benchbook.api.lookup import Delegated, NamedCollection, NotThere
from benchbook.api.run import Run
from benchbook.api.sessions import build_sessions_table, find_places, list_sessions
from benchbook.compare.bottlenecks.load_curve import build_load_curve
from benchbook.compare.stats import equivalence
from benchbook.compare.stats.intervals import block_interval
from benchbook.compare.stats.pairs import block_ratios
from benchbook.compare.text.results_table import ResultsTable, build_results, rows_of_finding
from benchbook.core.artifacts import findings, meta_analysis, record, run_folder
from benchbook.core.artifacts.findings import Findings
from benchbook.core.artifacts.meta_analysis import MetaAnalysis
from benchbook.core.study import load
from benchbook.core.study import study as core_study
from benchbook.core.util import files, number_format, paths
from benchbook.core.util.errors import did_you_mean
from benchbook.read import tidy
from benchbook.show import bottleneck_section, forest, run_tables
from benchbook.show.markup import make_element
from benchbook.show.results_view import render_html, render_text, results_frame
from benchbook.show.templating import render_template


@dataclass(frozen=True, repr=False)
class Finding:
    """One effect of a treatment against the baseline. Effects are fractions: -0.12 is 12 % less.

    `data` is all that findings.json holds of it. What could not be computed is None.
    """

    study: str
    data: findings.FindingData

    id = Delegated[str](
        "data.id", "Its name, workload.treatment.metric; also its anchor on the study's page."
    )
    workload = Delegated[str]("data.workload", "The workload.")
    treatment = Delegated[str]("data.treatment", "The arm in question.")
    baseline = Delegated[str]("data.baseline", "The arm compared against.")
    metric = Delegated[str]("data.metric", "What is compared: a column of `runs`.")
    threads = Delegated[tuple[int, ...]](
        lambda item: tuple(item.data.threads), "The thread levels it covers."
    )
    effect = Delegated[float | None](
        "data.effect", "Treatment over baseline, less one: geometric mean over threads, then over blocks."
    )
    interval = Delegated[tuple[float | None, float | None]](
        attrgetter("data.low", "data.high"), "Both ends of the interval, at the confidence `level`."
    )
    level = Delegated[float]("data.level", "Confidence of the interval.")
    n = Delegated[int]("data.n", "Complete blocks that it rests on.")
    label = Delegated[str](
        "data.label",
        "What is shown: higher, lower, no practical difference, not shown, depends on threads, no useful "
        "interval, or not decided yet.",
    )
    claim = Delegated[str | None]("data.claim", "The claim it answers, `source/claim`.")
    verdict = Delegated[str | None](
        "data.verdict", "Confirmed, contradicted or inconclusive; None without a claim."
    )
    warnings = Delegated[list[str]](lambda item: list(item.data.warnings), "What speaks against it.")
    levels = Delegated[pd.DataFrame](
        lambda item: of_parts("levels", item.data.levels),
        "The effect at each thread level, each decided with Holm's correction.",
    )
    by_threads = Delegated[pd.DataFrame](
        lambda item: of_parts("by_threads", item.data.by_threads),
        "The effect at each thread level, exploratory.",
    )
    runs = Delegated[list[str]](lambda item: list(item.data.runs), "Ids of the runs that it rests on.")

    @property
    def table(self) -> ResultsTable:
        """Its rows: each thread level, and all together if the effect doesn't depend on them."""
        return ResultsTable(self.study, "", tuple(rows_of_finding(self.data)))

    def plot(self) -> forest.Forest:
        """Draw it with its interval, over all threads and at each level."""
        return forest.of_findings([self.data], with_levels=True)

    def __repr__(self) -> str:
        lines = [f"{self.id}: {self.label}", *render_text(self.table)]
        if self.claim:
            lines.append(f"  claim {self.claim}: {self.verdict or 'not judged'}")
        return "\n".join([*lines, *(f"  ! {text}" for text in self.warnings)])

    def _repr_html_(self) -> str:
        return render_template("objects/finding.html.j2", finding=self, table=render_html(self.table)).text


def _table_property(name: str, meaning: str) -> Delegated[pd.DataFrame]:
    # A shallow copy: pandas copies on the first write, so what is cached stays as it was read.
    return Delegated(lambda study: document_table(name, study._tidy[name].copy(deep=False)), meaning)


@dataclass(frozen=True, repr=False)
class Study:
    """One question and all that was measured for it. Tables are copies: change them as you like.

    Files are read when they are first asked for; a new `bb.study(name)` reads them again.
    """

    name: str
    is_recorded: bool = False
    session: str | None = None

    @property
    def sessions(self) -> NamedCollection[Study]:
        """Recorded sessions, the newest first, each a study by its id; `sessions.table` has a row each."""
        return NamedCollection(
            "recorded session",
            list_sessions(self.name),
            lambda session: Study(self.name, is_recorded=True, session=session),
            lambda: build_sessions_table(self.name),
            f"make record STUDY={self.name} adds one",
        )

    @cached_property
    def spec(self) -> core_study.StudySpec:
        """The study file, checked; of a recorded study the one it was measured by."""
        return load.study_file(self._there("file")) if self.is_recorded else load.load_study(self.name)

    title = Delegated[str]("spec.title", "Title of the report.")
    question = Delegated[str]("spec.question", "The question, in a sentence.")
    folder = Delegated[Path]("_places.data", "Everything the pipeline made for it.")
    report = Delegated[Path](lambda study: study._there("report"), "Its page.")
    dataset = Delegated[dict[str, Any]](
        lambda study: files.read_json(study._there("dataset")), "What was loaded and checked."
    )
    warm_up = Delegated[dict[str, Any]](
        lambda study: files.read_json(study._there("warm_up")), "What the pilots gave for the discard."
    )
    checks = Delegated[pd.DataFrame](
        lambda study: of_parts("checks", study._found.checks), "Consistency checks over all runs."
    )
    warnings = Delegated[list[str]](
        lambda study: [warning.text for warning in study._found.warnings],
        "What weakens the study, before any finding is read.",
    )

    @property
    def arms(self) -> tuple[str, ...]:
        """The arms: baseline first, the A/A pair's second name last."""
        return (*self.spec.arms, *([self.spec.twin] if self.spec.twin else []))

    runs = _table_property("runs", "One row a valid run.")
    intervals = _table_property("intervals", "One row a second of a run.")
    turns = _table_property("turns", "The turns of runs that were made in turns: one row a run and turn.")
    histograms = _table_property("histograms", "Latencies: one row a run and bucket.")
    monitor = _table_property("monitor", "CPU, memory and pressure: one row a run, second and part.")
    costs = _table_property("costs", "What a query cost: one row a run and part.")
    voids = _table_property("voids", "One row a voided attempt, with the reasons.")
    refused = _table_property("refused", "Folders that were not read, and runs that are missing.")

    @property
    def load_curve(self) -> pd.DataFrame:
        """Busy cores and latency at each offered rate: one row a cell and metric; empty below three rates."""
        return document_table("load_curve", build_load_curve(self._found.causes, self.runs, self.histograms))

    def find_run_page(self, run_id: str) -> str | None:
        """Address of a run on its study's page of runs, from the clone on; None where no page has it."""
        page = self._places.run_pages / "index.html"
        if not page.is_file():
            return None
        return f"{page.relative_to(paths.find_root()).as_posix()}#{run_tables.run_anchor(run_id)}"

    def between(self, treatment: str, text: str, other: str, metric: str = "qps") -> pd.DataFrame:
        """An arm's effect under two workloads, and the one over the other, paired block by block."""
        choices = (treatment, self.arms[1:]), (text, self.spec.workloads), (other, self.spec.workloads)
        for word, names in choices:
            if word not in names:
                raise NotThere(f"{word}: not in this study; {did_you_mean(word, names)}")
        pair = self.runs, self.arms[0], treatment
        both = [block_ratios(*pair, of, self.spec.threads, metric).ratios for of in (text, other)]
        analysis = load.load_params("analysis").analysis.for_blocks(self.spec.plan.blocks)
        blocks = sorted(set(both[0].index) & set(both[1].index))
        looked = equivalence.reached_look(len(blocks), analysis.looks)
        ratios = [part.loc[blocks[:looked]] for part in both]
        names = (text, other, f"{text} over {other}")
        rows = []
        for name, part in zip(names, (*ratios, ratios[0] - ratios[1]), strict=True):
            interval, label = block_interval(part, analysis.level), "not decided yet"
            if looked is not None and interval.is_known:
                label = equivalence.label_interval(interval)
            rows.append({"workload": name, **interval.numbers, "label": label})
        return document_table("between", pd.DataFrame(rows))

    @property
    def table(self) -> pd.DataFrame:
        """The results as every page shows them: a row for each workload, thread level and treatment."""
        return document_table("results", results_frame(build_results(self._found, self._recorded)))

    @property
    def _recorded(self) -> MetaAnalysis | None:
        pooled = meta_analysis.read_pooled(self.name)
        return pooled if pooled and self.is_recorded else None

    def plot(self) -> forest.Forest:
        """Draw every effect with its interval."""
        return forest.of_findings(self._found.findings, self._found.aa)

    @property
    def schedule(self) -> pd.DataFrame:
        """Every planned run in its order."""
        return document_table("schedule", pd.read_csv(self._there("schedule")))

    @property
    def findings(self) -> NamedCollection[Finding]:
        """The effects, by id, by place, or in a loop; `findings.table` has one row each."""
        of_study = self._found.findings
        by_id = {finding.id: Finding(self.name, finding) for finding in of_study}

        def table() -> pd.DataFrame:
            return document_table("findings", pd.DataFrame(map(dict, of_study)))

        return NamedCollection("finding", list(by_id), by_id.__getitem__, table, "see `warnings`")

    @property
    def claims(self) -> pd.DataFrame:
        """A row a cell of each claim that it answers: value, interval, band as fractions, and the outcome."""
        rows = [
            dict(part.plain, band_low=part.band[0], band_high=part.band[1])
            | {"claim": answer.claim, "is_judged": answer.judged, "verdict": answer.verdict}
            for answer in self._found.claims or ()
            for part in answer.parts
        ]
        return document_table("study_claims", pd.DataFrame(rows))

    @property
    def aa(self) -> Finding | None:
        """The A/A pair: effects found between equal arms."""
        return Finding(self.name, self._found.aa) if self._found.aa else None

    @property
    def everything(self) -> list[Finding]:
        """The A/A pair, if there is one, and all findings."""
        return [*([self.aa] if self.aa else []), *self.findings]

    @property
    def why(self) -> list[str]:
        """Causes of its effects: a sentence for each that the costs of a query explain."""
        return [
            f"{bottleneck_section.name_place(cause, self._found)}: {cause.sentence}"
            for cause in bottleneck_section.select_causes(self._found)
        ]

    @property
    def facts(self) -> pd.DataFrame:
        """Facts on each arm: one row a fact, one column an arm."""
        arms = files.read_json(self._there("facts"))["arms"]
        flat = {arm: pd.json_normalize(facts).iloc[0].astype(object) for arm, facts in arms.items()}
        return pd.DataFrame(flat).rename_axis("fact")

    @property
    def run(self) -> NamedCollection[Run]:
        """Every run folder by the start of its id, in the order of the schedule; voids and pilots last."""
        planned = [name for name in self._order if name in self._folders]
        names = list(dict.fromkeys([*planned, *self._folders]))
        return NamedCollection("run", names, lambda name: Run(name, self._folders[name]), hint=self.next_step)

    @property
    def stages(self) -> pd.DataFrame:
        """The stages, each with its output and if that is there."""
        runs, planned = self.progress
        rows = []
        for stage, (notebook, leaves) in paths.STAGES.items():
            place: Path = getattr(self._places, leaves)
            is_done, detail = place.exists(), ""
            if leaves == "raw" and is_done:
                is_done, detail = runs == planned, f"{runs} of {planned or 'unknown'} runs"
            short = str(place.relative_to(self._places.base))
            rows.append((stage, f"notebooks/{notebook}.ipynb", short, is_done, detail))
        columns = ["stage", "notebook", "leaves", "is_done", "detail"]
        return document_table("stages", pd.DataFrame(rows, columns=columns))

    @property
    def progress(self) -> tuple[int, int | None]:
        """Valid runs that are there, and planned ones (None before there is a schedule)."""
        return sum(name in self._folders for name in self._order), len(self._order) or None

    @property
    def is_analyzed(self) -> bool:
        """True if there are findings."""
        return self._places.findings.is_file()

    @property
    def next_step(self) -> str:
        """The command for the missing part; empty if all is there."""
        if self.is_recorded:
            return "" if self.is_analyzed else "make pages"
        is_whole = self.is_analyzed and self._places.report.is_file()
        return "" if is_whole else f"make repro STUDY={self.name}"

    def __repr__(self) -> str:
        if self.is_recorded and not self.is_analyzed:
            return str(self._absent())
        lines = [f"{self.name}: {self.title}", f"  {self._state}"]
        lines += [f"  session {self.session}"] if self.session else []
        if self.is_analyzed:
            lines += render_text(build_results(self._found))
        return "\n".join([*lines, *([f"  next: {self.next_step}"] if self.next_step else [])])

    def _repr_html_(self) -> str:
        if self.is_recorded and not self.is_analyzed:
            return make_element("p", self._absent()).text
        table = render_html(build_results(self._found, self._recorded)) if self.is_analyzed else ""
        return render_template("objects/study.html.j2", study=self, state=self._state, table=table).text

    @property
    def _state(self) -> str:
        runs, planned = self.progress
        if planned is None:
            return "nothing has been measured yet"
        text = f"{runs} of {number_format.format_count(planned, 'run')}"
        if not self.is_analyzed:
            return f"{text}, not analyzed yet"
        blocks = self._found.blocks
        return (
            f"{text}, {blocks.complete} of {number_format.format_count(blocks.planned, 'block')}, "
            f"{number_format.format_minutes(self._found.machine_minutes)} of machine time"
        )

    @cached_property
    def _places(self) -> paths.StudyPaths:
        if self.session is not None:
            return find_places(self.name, self.session)
        return (
            record.read_index().newest(self.name).where if self.is_recorded else paths.study_paths(self.name)
        )

    def _there(self, leaves: str) -> Path:
        place: Path = getattr(self._places, leaves)
        if not place.exists():
            short = place.relative_to(self._places.base)
            absent = f"{self.name}: {short} is not there yet; make repro STUDY={self.name}"
            raise self._absent() if self.is_recorded else NotThere(absent)
        return place

    def _absent(self) -> NotThere:
        return NotThere(f"{self.name}: recorded, but not made from its raw logs yet; run `make pages` first")

    @cached_property
    def _tidy(self) -> dict[str, pd.DataFrame]:
        try:
            return tidy.load_tables(self._there("tidy"))
        except (ValueError, FileNotFoundError) as error:
            raise NotThere(f"{self.name}: {error}: make repro ARGS=parse@{self.name}") from None

    @cached_property
    def _found(self) -> Findings:
        return Findings.read(self._there("findings"))

    @cached_property
    def _order(self) -> list[str]:
        place = self._places.schedule
        return pd.read_csv(place)["run_id"].tolist() if place.is_file() else []

    @cached_property
    def _folders(self) -> dict[str, Path]:
        places = (self._places.raw, self._places.void, self._places.pilots)
        return {folder.name: folder.path for place in places for folder in run_folder.list_folders(place)}
