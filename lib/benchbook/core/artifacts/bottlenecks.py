"""`causes` of findings.json: cost of a query for each part, the full part, and the sentence.

Three quantities, never under one name: latency added at low load (us a query), cost (processor us a query),
and capacity (QPS when a named part is full). Shares and changes are fractions.
"""

from typing import Literal

from benchbook.core.artifacts.artifact import Text
from benchbook.core.study.study_base import Model

Quantity = Literal["latency", "capacity", "cost"]
CLIENT_USED = "the client used"
"""How the check begins that sets runs aside whose client had no core to spare."""


class CostEstimate(Model):
    """A mean over blocks with its interval; the ends are null if there are too few blocks."""

    value: float
    low: float | None = None
    high: float | None = None
    n: int


class PartCost(Model):
    """Cost of a query in one part of an arm."""

    part: str
    busy_cores: CostEstimate
    a_query: dict[str, CostEstimate]
    """By the columns of the table `costs`, those that are known."""


class CoreGroup(Model):
    """Cores, and the parts of the arm that ran on them."""

    parts: tuple[str, ...]
    cores: float
    used: CostEstimate
    """Share of what the machine's host left of these cores."""
    is_full: bool | None
    """Null where the interval does not tell."""


class CellCosts(Model):
    """One arm at one workload and number of threads."""

    workload: str
    threads: int
    arm: str
    qps: CostEstimate
    latency_us: CostEstimate | None
    """Mean time of a query from the client's side; null where the load is not a closed loop."""
    parts: tuple[PartCost, ...]
    places: tuple[CoreGroup, ...]
    """Empty where it is not known on which cores the parts ran."""


class Cause(Model):
    """Reason that a treatment served more or fewer queries than the baseline at one cell."""

    workload: str
    threads: int
    treatment: str
    quantity: Quantity | None
    """Capacity where a part is full, else latency; cost at a rate that is asked for; null if that is open."""
    qps: CostEstimate | None
    """Change of queries a second; null at a rate that is asked for."""
    full: dict[str, tuple[str, ...]]
    """By arm the parts whose cores were full."""
    cost: dict[str, CostEstimate]
    """By part the change of its processor time of a query, where both arms have that part."""
    added_latency_us: CostEstimate | None
    added_cpu_us: CostEstimate | None
    """Processor time of all parts together."""
    sentence: Text[str | None]
    """Where the time went, in words; null where `reason` says why."""
    short: Text[str | None] = None
    """The same in about six words."""
    predicted: CostEstimate | None = None
    """What the named cause gives by itself: the change of queries a second, or us a query takes longer."""
    beside: Text[tuple[str, ...]] = ()
    """What else of the server's work for a query differed, in words."""
    reason: Text[str | None] = None


class Law(Model):
    """One check from physics over all cells that it can speak of."""

    law: str
    passed: bool | None
    """Null where nothing recorded can tell."""
    detail: Text[str]


class Causes(Model):
    """All causes of a study."""

    version: Literal[1] = 1
    level: float
    """Of all intervals here."""
    cells: tuple[CellCosts, ...]
    contrasts: tuple[Cause, ...]
    physics: tuple[Law, ...]
