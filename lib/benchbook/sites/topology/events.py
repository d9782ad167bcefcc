"""A planned event in the middle of a run, carried out by the thread that waits for the run's clients."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import sqlalchemy

from benchbook.core.study.study_cluster import ArmEvent, Event
from benchbook.core.util.errors import SiteError

Record = dict[str, Any]


class EventInProgress:
    """Event whose `record` has the time of each step, or the error; its steps yield the seconds to wait."""

    def __init__(
        self, planned: Event | ArmEvent, begin_steps: Callable[[Any, Record], Iterator[float]]
    ) -> None:
        self.record: Record = {"asked": planned.model_dump(), "error": "the run ended before it"}
        self._steps, self._at_s = begin_steps(planned, self.record), planned.at_s
        self._due_s: float | None = None
        self._is_over = False

    def advance(self, begun_s: float) -> float | None:
        """Carry out what is due of the event; seconds until the next step, None after the last."""
        if self._is_over:
            return None
        due_s = begun_s + self._at_s if self._due_s is None else self._due_s
        if (wait_s := due_s - time.monotonic()) > 0:
            return wait_s
        try:
            next_s = next(self._steps, None)
        except (SiteError, OSError, ValueError, KeyError, sqlalchemy.exc.SQLAlchemyError) as error:
            self.record["error"], next_s = f"{type(error).__name__}: {error}", None
        self._is_over = next_s is None
        self._due_s = time.monotonic() + (next_s or 0.0)
        return next_s
