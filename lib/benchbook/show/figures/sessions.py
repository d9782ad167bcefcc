"""Effects against what may order them, session by session."""

from __future__ import annotations

from collections.abc import Sequence

from benchbook.compare import moderators
from benchbook.compare.moderators import Ordered
from benchbook.compare.pooled_words import percent
from benchbook.core.pooled import Contrast, PooledEffect
from benchbook.core.wording import count
from benchbook.show import theme
from benchbook.show.markup import slug
from benchbook.show.picture import Panel, Picture

AGAINST = (
    "Each dot is an occasion: sessions of one processor within six hours. p is by all orders of occasions "
    "and counts every moderator that was asked."
)


def against(found: Sequence[Ordered], contrast: Contrast, effect: PooledEffect) -> Picture:
    """Draw an effect against what its sessions differ in, a panel for each moderator, the best first."""
    panels = []
    for one in found:
        with theme.style():
            figure, axes = theme.canvas(theme.WIDTH, 1.7)
            effects = [100 * value for value in one.effects]
            axes.plot(one.values, effects, "o", color=theme.ACCENT, markersize=4.5)
            axes.axhline(0, color=theme.MUTED, linewidth=0.8)
            axes.set_xlabel(f"{moderators.WORDS[one.name]}: rank correlation {one.rho:+.2f}, p = {one.p:.2g}")
            axes.set_ylabel("%")
        told = "; ".join(
            f"{value:g}: {percent(seen)}" for value, seen in sorted(zip(one.values, one.effects, strict=True))
        )
        panels.append(Panel(figure, f"{moderators.WORDS[one.name]}: {told}."))
    at = "" if effect.threads is None else f", {count(effect.threads, 'thread')}"
    title = f"{contrast.names.treatment} on {contrast.names.workload}{at}, by what differed"
    return Picture(f"moderators-{slug(contrast.id)}", title, tuple(panels), AGAINST)
