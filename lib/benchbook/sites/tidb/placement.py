"""What PD tells over HTTP of a cluster: its stores, where the leaders of its regions are, its settings.

The port has no login, so the lab binds it to loopback, as the stores' ports and TiDB's status port.
"""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from benchbook.core.errors import SiteError
from benchbook.sites.machine.contract import Asks, Request
from benchbook.sites.settings import Value, same, text
from benchbook.sites.tidb.status import flat

# Settings that PD keeps with its data, so that its file counts at the first start alone.
KEPT = ("schedule.", "replication.", "pd-server.")


@dataclass(frozen=True)
class State:
    """Stores by name with `id` and `state`, the store that leads each region (None: none does), how many
    regions are on how many stores, and how many PD is at work on."""

    stores: dict[str, dict[str, Any]]
    leaders: dict[str, str | None]
    replicas: dict[str, int]
    busy: int


@dataclass(frozen=True)
class Placement:
    """One PD. `names` are those of the stores by the addresses that they are known under."""

    address: str
    port: int
    names: Mapping[str, str]
    by: Asks

    @property
    def answers(self) -> bool:
        """Say whether PD answers and is the leader of its own group."""
        try:
            return bool(self._ask("leader").get("name"))
        except (OSError, ValueError):
            return False

    def state(self) -> State:
        """Return what PD tells of stores and regions now."""
        stores = {
            one["store"]["id"]: (self._name(one["store"]["address"]), one["store"])
            for one in self._ask("stores").get("stores") or ()
        }
        regions = self._ask("regions").get("regions") or ()
        leaders = {}
        for region in regions:
            leader = (region.get("leader") or {}).get("store_id")
            leaders[str(region["id"])] = stores[leader][0] if leader in stores else None
        copies = Counter(len(one["peers"]) - len(one.get("pending_peers") or ()) for one in regions)
        return State(
            stores={name: {"id": id, "state": one["state_name"]} for id, (name, one) in stores.items()},
            leaders=dict(sorted(leaders.items())),
            replicas={str(count): number for count, number in sorted(copies.items())},
            busy=len(self._ask("operators") or ()),
        )

    def config(self) -> dict[str, Any]:
        """Return its settings by dotted name."""
        told = flat(self._ask("config"))
        return {key: value == "true" if _is_worded(value) else value for key, value in told.items()}

    def set(self, asked: Mapping[str, Value]) -> None:
        """Set what PD keeps with its data, where it differs."""
        now = self.config()
        differing = {
            key: value
            for key, value in asked.items()
            if key.startswith(KEPT) and not same(value, text(now.get(key, "")))
        }
        # Some switches PD takes as words only, and it tells those as words.
        worded = {key for key, value in flat(self._ask("config")).items() if _is_worded(value)}
        said = {
            key: str(value).lower() if key in worded and isinstance(value, bool) else value
            for key, value in differing.items()
        }
        try:
            if said:
                self._ask("config", said)
        except urllib.error.HTTPError as error:
            why = error.read().decode("utf-8", "replace").strip()[:200]
            raise SiteError(f"engine.cluster.pd_settings: {said}: PD says: {why}") from None

    def _name(self, address: str) -> str:
        return self.names.get(address, "unknown")

    def _ask(self, what: str, said: Mapping[str, Any] | None = None) -> Any:
        path = f"/pd/api/v1/{what}"
        asked = Request(path) if said is None else Request(path, "POST", json.dumps(said))
        told = self.by.request(self.address, self.port, asked)
        return json.loads(told) if said is None else told


def _is_worded(value: Any) -> bool:
    return isinstance(value, str) and value in ("true", "false")


def faults(state: State, stores: int, replicas: int) -> list[str]:
    """Return what keeps a cluster from being ready, in words; none means it is."""
    up = [name for name, one in state.stores.items() if one["state"] == "Up"]
    lost = [region for region, store in state.leaders.items() if store is None]
    found = [f"{len(up)} of {stores} stores are up"] if len(up) != stores else []
    if not state.leaders:
        found.append("there is no region yet")
    if lost:
        found.append(f"{len(lost)} regions have no leader")
    wrong = sum(count for copies, count in state.replicas.items() if int(copies) != replicas)
    if wrong:
        found.append(f"{wrong} regions are not on {replicas} stores")
    return found + ([f"PD is at work on {state.busy} regions"] if state.busy else [])
