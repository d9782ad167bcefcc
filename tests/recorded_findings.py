"""Findings of all recorded sessions, as git has them beside the archives; read once."""

from functools import cache

from benchbook.core.artifacts import record
from benchbook.core.artifacts.findings import Findings


@cache
def recorded_findings() -> dict[tuple[str, str], Findings]:
    """Findings by study and session."""
    known = record.read_index().sessions()
    return {(session.where.name, session.id): session.results.findings for session in known}


# Sessions of which goldens hold what is said; later ones change nothing there.
SESSIONS = {
    "quick": "20261126T0553Z-34c2", "lab-access": "20261126T0609Z-1634", "lab-engines": "20261126T2322Z-df6d",
    "lab-ladder": "20261126T1017Z-30a6", "lab-proxies": "20261125T1707Z-f259",
    "lab-rates": "20261126T0614Z-a7b6", "lab-tiproxy-cpu": "20261125T0517Z-4d9a",
    "lab-zones": "20261126T2256Z-37ab", "cluster-access": "20261123T0538Z-0ad4",
}  # fmt: skip


def chosen_findings(study: str) -> Findings:
    """Findings of the session of a study that goldens are about."""
    return recorded_findings()[study, SESSIONS[study]]
