"""Joint results of recorded sessions, by the results that git has of each."""

from benchbook.compare.meta.meta_analysis import SessionResult, build_session, pool_sessions
from benchbook.core.artifacts import design
from benchbook.core.artifacts.meta_analysis import MetaAnalysis
from benchbook.core.artifacts.record import INDEX, Entry, Index, Results
from benchbook.core.study.model import compute_fingerprint
from benchbook.core.util.errors import BenchbookError


def build_recorded(session: str, entry: Entry, results: Results, differs: str = "") -> SessionResult:
    """A recorded session with what pooling reads, and how its design differs from the newest."""
    return build_session(
        *(session, entry.measured, entry.design, results.findings, results.facts.arms, entry.superseded),
        probes=results.facts.probes,
        differs=differs,
    )


def pool_study(index: Index, name: str, of_design: str | None = None) -> MetaAnalysis | None:
    """Joint results of a study's sessions of a design, the newest one's if none is named.

    None where nothing can be pooled; BenchbookError where results are not those of the index.
    """
    recorded = [(session, session.pooled_results) for session in index.sessions(name)]
    newest, current = next((session, results.design) for session, results in recorded if session.is_newest)
    brought = []
    for session, results in recorded:
        entry = session.entry
        # The newest is made again, and its page says what of it is not as recorded.
        if not session.is_newest and compute_fingerprint(results.design, 12) != entry.design:
            place = session.place_of(session.where.results)
            raise BenchbookError(f"{place}: of another design than {INDEX} says; take both from git again")
        is_other = entry.design != newest.entry.design
        differences = design.describe_differences(results.design, current) if is_other else ()
        brought.append(build_recorded(session.id, entry, results, "; ".join(differences)))
    try:
        pooled = pool_sessions(name, brought, of_design or newest.entry.design)
    except ValueError:
        return None
    study = index.studies[name]
    return pooled.model_copy(update={"not_recorded": study.not_recorded, "retired": study.retired})
