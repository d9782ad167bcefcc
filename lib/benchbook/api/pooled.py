"""What the recorded sessions of a study say together, as tables and as an object that shows itself."""

from __future__ import annotations

from functools import cached_property

import pandas as pd

from benchbook.api.columns import Table, documented
from benchbook.api.names import Named, NotThere
from benchbook.compare import pooled_frames
from benchbook.core import pooled as core
from benchbook.show import forest, sessions
from benchbook.show.markup import join


class Pooled:
    """All recorded sessions of a study: `effects` over them, `sessions` one by one, `left_out`."""

    def __init__(self, name: str) -> None:
        found = core.of(name)
        if found is None:
            raise NotThere(f"{name}: no sessions are recorded, or not made yet; run `make pages` first")
        self.name, self.data = name, found

    @property
    def headlines(self) -> list[str]:
        """A sentence for each effect that a reader sees."""
        return [effect.headline for contrast in self.data.contrasts for effect in contrast.told]

    @cached_property
    def effects(self) -> pd.DataFrame:
        """A row for each effect over sessions: mean, where a further session is expected, label."""
        return documented("pooled", pooled_frames.effects(self.data))

    @cached_property
    def sessions(self) -> pd.DataFrame:
        """A row for each effect in each session, with processor, kernel, steal and the rest beside it."""
        frame = Table(pooled_frames.sessions(self.data))
        frame.attrs["table"] = "pooled_sessions"
        return frame

    def plot(self) -> forest.Forest:
        """Draw every effect: its sessions, their mean, and where a further session is expected."""
        return forest.over_sessions(self.data)

    @property
    def by_session(self) -> Named[forest.Forest]:
        """A forest of each contrast, session by session: `by_session[0]`, or by its id."""
        drawn = {one.id: one for one in self.data.contrasts if any(part.sessions for part in one.told)}
        return Named("contrast", list(drawn), lambda name: forest.by_session(self.data, [drawn[name]]))

    @property
    def left_out(self) -> pd.DataFrame:
        """The sessions that are not pooled, each with its reason; of those not recorded their begin."""
        rows = [{"session": one.session.id, "reason": one.reason} for one in self.data.left_out]
        missed = self.data.not_recorded
        rows += [{"session": one.begun, "reason": f"not recorded: {one.why}"} for one in missed]
        return documented("left_out", pd.DataFrame(rows))

    def __repr__(self) -> str:
        lines = (
            f"  {effect.label}: {effect.headline}"
            for contrast in self.data.contrasts
            for effect in contrast.told
        )
        return "\n".join([f"{self.name}: {len(self.data.sessions)} sessions", *lines])

    def _repr_html_(self) -> str:
        shown = (one._repr_html_() for one in sessions.evidence(self.data))
        return join([sessions.answer(self.data), *map(_html, shown)]).text


def _html(text: str) -> sessions.Html:
    return sessions.Html(text)


def pooled(name: str) -> Pooled:
    """Return what the recorded sessions of a study say together; NotThere where there are none."""
    return Pooled(name)
