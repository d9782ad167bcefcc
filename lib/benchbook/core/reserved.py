"""Settings that are not a study's to make: where a server lives, who reaches it, and what files it writes.

Which these are of an engine its own traits say; here is how they are refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from benchbook.core import traits

# Of the parts of a cluster: addresses, folders, encryption, what a log is written to, and what the cluster's
# own keys say.
PARTS = {
    "pd": re.compile(
        r"(advertise-|initial-|join$|name$|lease$|client-urls$|peer-urls$|data-dir$|force-new-cluster$|security"
        r"|log\.file|metric\.|dashboard\.|replication\.max-replicas$|replication-mode|cluster-version$)"
    ),
    "store": re.compile(r"(server\.(pd-addr|store-addr|status-addr|log-file|raft)$|engine\.db-path$)"),
}


def of_part(place: str, part: str, settings: Mapping[str, Any]) -> Iterator[str]:
    """Yield each setting of a cluster's part (`pd`, `store`) that is not a study's, with what to write."""
    for key, value in settings.items():
        if PARTS[part].match(key) or traits.leads_out(value):
            yield (
                f"{place}.{part}_settings.{key}: not a study's to set: it says where the part listens, lives "
                "or writes, or what the cluster's own keys say (replicas); remove it"
            )


def mistakes(place: str, engine: str, settings: Mapping[str, Any]) -> Iterator[str]:
    """Yield each setting under a path of the study that its engine reserves, with what to write instead."""
    for key in traits.engine(engine).reserved(settings):
        yield (
            f"{place}.settings.{key}: not a study's to set: it says, or is short for what says, where the "
            "server listens, lives or writes; remove it, or write in full the variable that is meant"
        )
