"""A published document as an object: its printed numbers, its claims, and its tables' results."""

from dataclasses import dataclass
from functools import cached_property

import pandas as pd

from benchbook.api.columns import document_table, of_parts
from benchbook.api.lookup import Delegated, NamedCollection
from benchbook.api.study import Finding
from benchbook.compare.claims import audit
from benchbook.compare.text.results_table import ResultsTable
from benchbook.core.published import audit as of_source
from benchbook.core.published import source
from benchbook.core.published.source import Published
from benchbook.core.util import number_format
from benchbook.read import published
from benchbook.show import claim_status
from benchbook.show.results_view import render_html, render_text
from benchbook.show.templating import render_template


@dataclass(frozen=True, repr=False)
class Claim:
    """A published sentence, with the result of the document's own tables for it."""

    source: str
    data: of_source.AuditedClaim

    id = Delegated[str]("data.id", "`source/claim`, as a study names it under `claims`.")
    says = Delegated[str]("data.claim", "What is claimed, in our words.")
    published = Delegated[str]("data.published", "The number as published.")
    recomputed = Delegated[str]("data.recomputed", "What follows from the document's own tables.")
    verdict = Delegated[str](
        "data.verdict", "Holds, does not hold, or not derivable: about the document's own numbers only."
    )
    reason = Delegated[str]("data.reason", "Why.")
    doubts = Delegated[list[str]](
        lambda claim: list(claim.data.doubts), "Failed checks that concern the numbers it rests on."
    )
    cells = Delegated[pd.DataFrame](
        lambda claim: of_parts("claim_cells", claim.data.cells),
        "The arithmetic of every cell that it speaks of.",
    )

    @property
    def measured(self) -> list[Finding]:
        """Findings of studies here that answer it."""
        answers = claim_status.load_status(self.source).answers(self.id)
        return [Finding(study.name, answer) for study, answer in answers]

    @property
    def illustrated(self) -> list[Finding]:
        """Findings of studies here with arms that stand in for those it names; they judge nothing."""
        shows = claim_status.load_status(self.source).shows(self.id)
        return [Finding(study.name, show) for study, show in shows]

    @property
    def _here(self) -> list[tuple[str, ResultsTable]]:
        """Results of studies here, each under what it is to the claim."""
        measured = self.measured
        what, findings = ("Measured", measured) if measured else ("Illustrated", self.illustrated)
        return [(f"{what} here ({finding.study})", finding.table) for finding in findings]

    def __repr__(self) -> str:
        lines = [
            f"{self.id}: {self.verdict}",
            f"  {self.says}",
            f"  published {self.published}; recomputed {self.recomputed}",
            *(f"  ! {text}" for text in self.doubts),
        ]
        for title, table in self._here:
            lines += [f"  {title}:", *(f"  {line}" for line in render_text(table))]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        here = {title: render_html(table) for title, table in self._here}
        return render_template("objects/claim.html.j2", claim=self, here=here).text


@dataclass(frozen=True, repr=False)
class Source:
    """One published document, audited from the tables that are carried with it; no pipeline is needed."""

    name: str

    @cached_property
    def document(self) -> source.SourceSpec:
        """Its `source.yaml`: versions, machines, settings, arms, workloads."""
        return source.load_source(self.name)

    title = Delegated[str]("document.title", "Title of the document.")
    checks = Delegated[pd.DataFrame](
        lambda source: of_parts("checks", source.audit.checks),
        "Laws of arithmetic that its tables pass or fail.",
    )
    leaves_open = Delegated[list[str]](
        lambda source: list(source.audit.leaves_open), "What the document does not say."
    )

    @property
    def cells(self) -> pd.DataFrame:
        """One row a printed number: table, row, metric, value, printed text, its unit, and the keys
        (arm, workload, threads …) that tell cells apart."""
        return self._published.cells.copy()

    @property
    def tables(self) -> NamedCollection[pd.DataFrame]:
        """Its tables, digit for digit."""
        texts = self._published.texts
        return NamedCollection("table", list(texts), lambda name: texts[name].copy())

    @property
    def claims(self) -> NamedCollection[Claim]:
        """Its claims in the document's order."""
        new_claims = {claim.names[1]: Claim(self.name, claim) for claim in self.audit.claims}

        def table() -> pd.DataFrame:
            rows = [
                (name, claim.says, claim.published, claim.recomputed, claim.verdict)
                for name, claim in new_claims.items()
            ]
            columns = ["claim", "says", "published", "recomputed", "verdict"]
            return document_table("claims", pd.DataFrame(rows, columns=columns))

        return NamedCollection("claim", list(new_claims), new_claims.__getitem__, table)

    @cached_property
    def audit(self) -> of_source.Audit:
        """All of the audit, as `audit.json` has it, computed now."""
        return audit.audit_source(self._published)

    @cached_property
    def _published(self) -> Published:
        return published.load_source(self.name)

    @property
    def _told(self) -> str:
        counts = self.audit.counts
        return (
            f"{number_format.format_count(counts.tables, 'table')}, "
            f"{number_format.format_count(counts.cells, 'number')}, "
            f"{number_format.format_count(counts.claims, 'claim')}: its own tables bear out "
            f"{counts.holds}, contradict {counts.does_not_hold} and leave {counts.not_derivable} open"
        )

    def __repr__(self) -> str:
        width = max((len(claim.verdict) for claim in self.claims), default=0)
        claims = (f"  {claim.verdict:{width}}  {name}" for name, claim in self._by_name())
        return "\n".join([f"{self.name}: {self.title}", f"  {self._told}", *claims])

    def _repr_html_(self) -> str:
        claims = self._by_name()
        return render_template("objects/source.html.j2", source=self, caption=self._told, claims=claims).text

    def _by_name(self) -> list[tuple[str, Claim]]:
        return list(zip(self.claims.names, self.claims, strict=True))
