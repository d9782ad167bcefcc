"""What V14 asks of the kernel: that no stranger traced, stopped or robbed the processes of an arm.

Runs made before this was looked for have no `strangers`, which `verify` lists. `faults` and `words` return
sentences; none means that nothing was seen.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchbook.read.evidence import Evidence

AGAIN_SHARE, AGAIN_LEAST = 1e-4, 20
"""Share of segments, and how many, from which they are lost; a busy machine sends up to 14 again in a run."""
HERE = {"machine"}
"""The machines of a run that is on one of them."""


def faults(run: Evidence) -> list[str]:
    """Return who did what to the arm's processes and packets in the run, and who traced them at its ends."""
    seen, turns = run.seen.get("strangers") or {}, run.seen.get("turns") or {}
    found = [*_at_ends(run)]
    for machine, one in sorted(seen.items()):
        found += [
            f"the {part} was traced by {by}{_at(machine)}" for part, by in sorted(one["traced"].items())
        ]
        if not run.is_in_turns:
            found += [
                f"the {part} was stopped in the run{_at(machine)}"
                for part in sorted({*one["continued"], *one["stopped"]})
            ]
    if halted := turns.get("halted"):
        found.append(f"at the end of {halted} of its {turns['count']} turns a part of the arm stood still")
    if seen.keys() == HERE and (lost := _again(seen["machine"])):
        found.append(f"{lost}, at most {100 * AGAIN_SHARE:g} %")
    return found


def words(run: Evidence) -> Iterator[str]:
    """Yield what others did that may have touched the arm, though nothing shows that it did."""
    seen = run.seen.get("strangers") or {}
    for machine, one in sorted(seen.items()):
        for name in one["counting"]:
            whose = "of which processes, the kernel does not say"
            yield f"{name} counted events of performance{_at(machine)}; {whose}"
        for network in one["networks"]:
            where = f"in the network of {' and '.join(network['parts'])}{_at(machine)}"
            if network["rules"]:
                yield f"{network['rules']} rules of the firewall that are not ours {where}"
            if network["dropped"]:
                yield f"rules of the firewall dropped {network['dropped']} packets {where}"
        if seen.keys() != HERE and (lost := _again(one)):
            yield f"{lost}{_at(machine)}"


def _at_ends(run: Evidence) -> Iterator[str]:
    for when in ("before", "after"):
        for part, place in sorted((run.seen.get(f"identity_{when}") or {}).items()):
            if part.endswith("_place") and isinstance(place, dict) and place.get("traced"):
                yield f"{part.removesuffix('_place')} was traced by {place['traced']} {when} the run"


def _again(one: dict[str, Any]) -> str | None:
    """Return how many segments of an arm's connections were sent again, if that is more than chance."""
    alone = [network for network in one["networks"] if not network["is_shared"]]
    for count in (one["connections"] or {}, *alone):
        sent, again = count.get("sent") or 0, count.get("again") or 0
        if again >= AGAIN_LEAST and again > AGAIN_SHARE * sent:
            return f"{again} of {sent} segments were sent again ({100 * again / sent:.2f} %)"
    return None


def _at(machine: str) -> str:
    return "" if machine in HERE else f" ({machine})"
