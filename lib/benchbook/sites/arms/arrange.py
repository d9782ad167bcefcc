"""What arranging arms into parts has in common on every site: what is shared, and its name, port and copy.

Arms that ask for the same part share it. Names and ports follow the order in which parts are asked for, so
the first server is always `server` on the study's own port.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from benchbook.core.engines import data_groups
from benchbook.core.study_arm import Arm

Part = TypeVar("Part")


@dataclass(frozen=True)
class Slot:
    """What a part is given: `rank` counts those of its role from 0, and its name follows from both."""

    name: str
    rank: int
    port: int


class Arranged(Generic[Part]):
    """The parts of a study, each made once; ports are counted at each place from `first_port` on."""

    def __init__(self, first_port: int) -> None:
        self._ports: Counter[str] = Counter()
        self._first_port = first_port
        self._ranks: Counter[str] = Counter()
        self._made: dict[Hashable, Part] = {}

    def once(
        self,
        key: Hashable,
        role: str,
        make: Callable[[Slot], Part],
        ports: int = 1,
        places: Collection[str] = ("",),
    ) -> Part:
        """Return the part with this key, made in the next slot, with the same ports at each of its places."""
        if key not in self._made:
            taken = max(self._ports[place] for place in places)
            for place in places:
                self._ports[place] = taken + ports
            rank, self._ranks[role] = self._ranks[role], self._ranks[role] + 1
            self._made[key] = make(Slot(numbered(role, rank), rank, self._first_port + taken))
        return self._made[key]


def numbered(role: str, rank: int) -> str:
    """Return the name of one of a role: server, server-2, server-3."""
    return role if rank == 0 else f"{role}-{rank + 1}"


def copies(arms: Mapping[str, Arm]) -> dict[str, str]:
    """Return for each arm the name of the prepared copy of its data, which arms with the same data share."""
    return {arm: numbered("snapshot", rank) for rank, names in enumerate(data_groups(arms)) for arm in names}
