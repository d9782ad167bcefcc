"""Sessions made up for tests of what is said over several: one contrast at one or more levels."""

import math
from itertools import count

from scipy.special import stdtrit

from benchbook.compare.meta.meta_analysis import SessionResult, build_session
from benchbook.core.artifacts.findings import FindingData
from tests import found

LEVEL = 0.98
MILAN = "AMD EPYC (family 25, model 1, stepping 1)"
TURIN = "AMD EPYC (family 26, model 2, stepping 1)"
XEON = "Intel(R) Xeon(R) Processor (family 6, model 207, stepping 2)"
OTHERS = [f"AMD EPYC (family 25, model {model}, stepping 9)" for model in range(90, 99)]
PROCESSORS = (XEON, MILAN, TURIN, *OTHERS)
"""A model for each session, so that every occasion is a processor of its own."""
_NUMBER = count(1)


def part(log_effect: float, error: float, n: int = 5, label: str = "higher", **more) -> dict:
    """Make an effect with the interval of n blocks, as findings.json has it."""
    half = stdtrit(n - 1, (1 + LEVEL) / 2) * error
    ends = {"effect": log_effect, "low": log_effect - half, "high": log_effect + half}
    made = {key: math.expm1(log) for key, log in ends.items()}
    return made | {"level": LEVEL, "n": n, "label": label} | more


def finding(
    whole: dict, levels: dict[int, dict] | None = None, treatment: str = "haproxy", **more
) -> FindingData:
    """Make a finding of a treatment against direct connections, on point selects."""
    names = {"haproxy": "HAProxy", "direct_again": "direct connections again"}
    roles = {"workload": "point selects", "baseline": "direct connections", "treatment": names[treatment]}
    made = {
        "id": f"oltp_point_select.{treatment}.qps", "workload": "oltp_point_select",
        "baseline": "direct", "treatment": treatment, "names": roles,
        "levels": [{"threads": threads, "note": None, **own} for threads, own in (levels or {}).items()],
    }  # fmt: skip
    return found.finding(**made | whole | more)


def session(
    *findings: FindingData, measured: str, processor: str = XEON, aa: FindingData | None = None,
    design: str = "a1", name: str = "", **more,
) -> SessionResult:  # fmt: skip
    """Bring a session with these findings, measured on a machine of two cores with HAProxy 2.6."""
    machine = {"cpu_model": processor, "cores": 2, "kernel": "6.18"}
    engine = {"name": "mariadb", "version": "10.11.19"}
    arms = {
        "direct": {"machine": machine, "engine": engine, "proxy": None, "network": "host"},
        "haproxy": {"machine": machine, "engine": engine, "proxy": {"name": "haproxy", "version": "2.6.12"}},
    }
    whole = found.findings(*findings, title="What does a proxy cost?", aa=aa)
    whole = whole.model_copy(update={"quiet": found.changed(whole.quiet, steal_pct=0.5)})
    return build_session(name or f"s{next(_NUMBER)}", measured, design, whole, arms, **more)


def twins(*logs: float) -> list[SessionResult]:
    """Bring a session a day, each with so large a difference of its equal arms."""
    return [
        session(
            finding(part(0.1, 0.005)), aa=finding(part(log, 0.005), treatment="direct_again"),
            measured=f"2026-11-0{place}T01:00", processor=PROCESSORS[place],
        )
        for place, log in enumerate(logs, 1)
    ]  # fmt: skip


def sessions(*logs: float, error: float = 0.005, processors=PROCESSORS, **more) -> list[SessionResult]:
    """Bring a session a day, each with one log effect, on the processors in turn."""
    return [
        session(
            finding(part(log, error, **more)),
            measured=f"2026-11-{place + 1:02d}T06:00",
            processor=processors[place % len(processors)],
        )
        for place, log in enumerate(logs)
    ]
