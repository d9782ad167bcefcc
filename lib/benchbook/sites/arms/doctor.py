"""What can be done here, on hosts and in a cluster: each kind of site says it for itself.

A kind has a module `doctor` in its room, with `examine()`; it looks only, and loads its libraries late.
"""

from __future__ import annotations

from benchbook import sites
from benchbook.sites.arms import obstacles
from benchbook.sites.machine.abilities import Ability


def examine() -> list[Ability]:
    """Return all abilities, needed ones first, and at the end whether the arms of each study can be made."""
    found = [ability for kind in sites.rooms("doctor") for ability in kind.examine()]
    return [*sorted(found, key=lambda ability: not ability.is_needed), *obstacles.examine()]
