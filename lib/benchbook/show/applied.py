"""The settings files, command lines and manifests that the arms were started with, each to be unfolded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchbook.core import applied
from benchbook.show.markup import Html
from benchbook.show.shape import shaped


def shown(texts: Mapping[str, str], facts: Mapping[str, Any] | None, names: Mapping[str, str]) -> list[Html]:
    """Return one block with a folded text for each file of `data/STUDY/applied`; none if none was kept.

    `texts` are the files by name, `facts` is the content of `facts.json`, `names` those of the arms.
    """
    arms: dict[str, dict[str, None]] = {}
    for arm, own in ((facts or {}).get("arms") or {}).items():
        for _, sha256 in applied.digests(own):
            arms.setdefault(sha256, {})[names.get(arm, arm)] = None
    listed = [(name, text, ", ".join(arms.get(applied.digest(text), {}))) for name, text in texts.items()]
    return [shaped("applied.html.j2", listed=listed)] if listed else []
