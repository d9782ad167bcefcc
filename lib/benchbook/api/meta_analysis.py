"""Joint results of a study's recorded sessions, as tables and as an object that shows itself."""

from functools import cached_property

import pandas as pd

from benchbook.api.columns import TerminalTable, document_table
from benchbook.api.lookup import NamedCollection, NotThere
from benchbook.compare.meta import recorded_sessions
from benchbook.compare.meta.meta_analysis import read_moderators
from benchbook.compare.text import cpu_models
from benchbook.compare.text.results_table import build_pooled_results
from benchbook.core.artifacts import meta_analysis as core
from benchbook.core.artifacts import record
from benchbook.show import forest, sessions
from benchbook.show.markup import Html, join_html
from benchbook.show.results_view import render_html, render_text

_IN_OTHER_WORDS = {"seen", "sessions", "occasions", "tau_pct", "within_tau_pct", "q_p", "elsewhere"}


class Pooled:
    """All recorded sessions of a study: `effects` over them, `sessions` one by one, `left_out`.

    NotThere if none can be pooled.
    """

    def __init__(self, name: str) -> None:
        meta_analysis = core.read_pooled(name)
        if meta_analysis is None and name in (index := record.read_index()).studies:
            meta_analysis = recorded_sessions.pool_study(index, name)
        if meta_analysis is None:
            raise NotThere(f"{name}: no sessions are recorded that can be pooled; `make record` adds one")
        self.name, self.data = name, meta_analysis

    @cached_property
    def effects(self) -> pd.DataFrame:
        """A row for each effect over sessions: mean, range of a further session, label."""
        return document_table("pooled", effect_rows(self.data))

    @cached_property
    def sessions(self) -> pd.DataFrame:
        """A row for each effect in each session, with processor, kernel, steal and the rest beside it."""
        rows = []
        for contrast, pair_effect in _pair_effects(self.data):
            for observed_effect in pair_effect.seen:
                session = self.data.session(observed_effect.session)
                rows.append(
                    {
                        "id": contrast.id,
                        "threads": pair_effect.threads,
                        "session": session.id,
                        "processor": cpu_models.name_processor(session.processor),
                        "label": observed_effect.label,
                        **observed_effect.model_dump(),
                        "measured": session.measured,
                        **read_moderators(session),
                    }
                )
        # Each probe of a machine is a column more.
        frame = TerminalTable(pd.DataFrame(rows).astype({"threads": "Int64"}) if rows else None)
        frame.attrs["table"] = "pooled_sessions"
        return frame

    def plot(self) -> forest.Forest:
        """Draw every effect: its sessions, their mean, and the range of a further session."""
        return forest.over_sessions(self.data)

    @property
    def by_session(self) -> NamedCollection[forest.Forest]:
        """A forest of each contrast, session by session: `by_session[0]`, or by its id."""
        contrasts = self.data.contrasts
        drawn = {of.id: of for of in contrasts if any(part.sessions for part in of.shown)}
        return NamedCollection("contrast", list(drawn), lambda id: forest.by_session(self.data, [drawn[id]]))

    @property
    def left_out(self) -> pd.DataFrame:
        """The sessions that are not pooled, each with its reason; of those not recorded their begin."""
        rows = [{"session": left.session.id, "reason": left.reason} for left in self.data.left_out]
        missed = self.data.not_recorded
        rows += [{"session": of.begun, "reason": f"not recorded: {of.why}"} for of in missed]
        return document_table("left_out", pd.DataFrame(rows))

    def __repr__(self) -> str:
        lines = render_text(build_pooled_results(self.data))
        return "\n".join([f"{self.name}: {len(self.data.sessions)} sessions", *lines])

    def _repr_html_(self) -> str:
        shown = (item._repr_html_() for item in sessions.build_evidence(self.data))
        table = render_html(build_pooled_results(self.data))
        return join_html([table, sessions.render_basis(self.data), *map(Html, shown)]).text


pooled = Pooled


def effect_rows(pooled: core.MetaAnalysis) -> pd.DataFrame:
    """Row for each contrast over all threads (`threads` is missing) and at each level."""
    rows = [
        {
            **{key: getattr(contrast, key) for key in ("id", "workload", "treatment", "baseline", "metric")},
            **pair_effect.model_dump(exclude=_IN_OTHER_WORDS),
            "tau": None if pair_effect.tau_pct is None else pair_effect.tau_pct / 100,
            "within_tau": None if pair_effect.within_tau_pct is None else pair_effect.within_tau_pct / 100,
            "occasions": pair_effect.k,
            "sessions": len(pair_effect.sessions),
        }
        for contrast, pair_effect in _pair_effects(pooled)
    ]
    return pd.DataFrame(rows, columns=None if rows else ["threads"]).astype({"threads": "Int64"})


def _pair_effects(pooled: core.MetaAnalysis) -> list[tuple[core.PooledContrast, core.PooledEffect]]:
    return [
        (contrast, effect) for contrast in pooled.contrasts for effect in (contrast.whole, *contrast.levels)
    ]
