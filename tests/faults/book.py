"""The one place where injected faults and what became of them are counted."""

import datetime
import json
import os
import re
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tests import beside

# Five, as long as each core has one who wants it.
SECONDS = 5.0 * max(1.0, min(6.0, os.getloadavg()[0] / len(os.sched_getaffinity(0))))
RESULT = Path(__file__).with_name("result.json")
README = Path(__file__).parents[2] / "README.md"
SENTENCE = re.compile(r"On \d{4}-\d\d-\d\d: \*\*\d+ faults injected: [^*]*\*\*")


@dataclass
class Injection:
    """One fault that was really injected; `is_accounted` once its test has seen all that must happen."""

    row: str
    what: str
    test: str
    is_accounted: bool = False


@dataclass
class Book:
    """All faults of a session. A wrong verdict or an orphan is counted where it is seen, then asserted."""

    injections: list[Injection] = field(default_factory=list)
    valid_verdicts: list[str] = field(default_factory=list)
    orphans: list[str] = field(default_factory=list)

    def counts(self) -> dict[str, int]:
        """Return how many faults were injected and had the outcome they must have, and what was wrong."""
        return {
            "injected": len(self.injections), "accounted": sum(one.is_accounted for one in self.injections),
            "invalid_as_valid": len(self.valid_verdicts), "orphans": len(self.orphans),
        }  # fmt: skip

    def sentence(self) -> str:
        """Return the result in one line, as the README states it."""
        form = "{injected} faults injected: {accounted} accounted for, "
        form += "{invalid_as_valid} invalid runs reported as valid, {orphans} orphans"
        return form.format(**self.counts())

    def assert_no_orphans(self, look: Callable[[], list[str]], seconds: float = SECONDS) -> None:
        """Look until nothing is left, for some seconds; what is left then is counted and asserted."""
        left = beside.gone(look, seconds)
        self.orphans += left
        assert left == []

    def pages(self) -> dict[str, list[Any]]:
        """Return all that is in it as plain values, for another process."""
        return asdict(self)

    def add(self, pages: dict[str, list[Any]]) -> None:
        """Enter what the book of another process of this session holds."""
        self.injections += [Injection(**one) for one in pages["injections"]]
        self.valid_verdicts += pages["valid_verdicts"]
        self.orphans += pages["orphans"]

    def write(self, path: Path = RESULT, readme: Path = README) -> None:
        """Write the figures down, and the sentence into the README."""
        date = datetime.datetime.now(datetime.UTC).date().isoformat()
        faults = sorted(f"{injection.row}: {injection.what}" for injection in self.injections)
        result = {"date": date, **self.counts(), "sentence": self.sentence(), "faults": faults}
        path.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        text = SENTENCE.sub(statement(result), readme.read_text(encoding="utf-8"))
        readme.write_text(text, encoding="utf-8")


# The one of this session.
BOOK = Book()


def statement(result: dict[str, Any]) -> str:
    """Return what the README says of a result."""
    return f"On {result['date']}: **{result['sentence']}**"
