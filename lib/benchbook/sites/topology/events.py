"""A planned event in the middle of a run, carried out by the thread that waits for the run's clients."""

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
        self._steps = begin_steps(planned, self.record)
        self._wait_s: float | None = planned.at_s
        self._since_s: float | None = None

    def advance(self, begun_s: float) -> float | None:
        """Carry out what is due of the event; seconds until the next step, None after the last."""
        if self._wait_s is None:
            return None
        since_s = begun_s if self._since_s is None else self._since_s
        if (left_s := since_s + self._wait_s - time.monotonic()) > 0:
            return left_s
        try:
            self._wait_s = next(self._steps, None)
            self.record["error"] = "the run ended before all was as it had been"
            if self._wait_s is None:
                del self.record["error"]
        except (SiteError, OSError, ValueError, KeyError, sqlalchemy.exc.SQLAlchemyError) as error:
            self.record["error"], self._wait_s = f"{type(error).__name__}: {error}", None
        self._since_s = time.monotonic()
        return self._wait_s
