"""Possible moderators of effects over sessions: facts of a session's machine, hour and programs."""

from __future__ import annotations

from typing import Any

from benchbook.compare.meta.random_effects import parse_time
from benchbook.compare.text import cpu_models
from benchbook.core.artifacts.meta_analysis import StudySession

MODERATORS = ("processor", "cores", "virtualization", "kernel", "steal_pct", "hour", "engine", "proxies")


def read_moderators(session: StudySession) -> dict[str, Any]:
    """Possible moderators of a session's effects, by column."""
    proxies = ", ".join(f"{name} {version}" for name, version in sorted(session.proxies.items()))
    messages = session.model_dump() | {
        "processor": cpu_models.name_processor(session.processor),
        "hour": parse_time(session.measured).hour,
        "proxies": proxies,
    }
    return {name: messages[name] for name in MODERATORS} | session.probes
