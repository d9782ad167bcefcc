"""The prepared data of a lab's servers: one copy for all arms that share data, put back for each block."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from benchbook.core.engines import data_groups
from benchbook.core.errors import SiteError
from benchbook.core.study import Study
from benchbook.sites import lab as labs
from benchbook.sites import layout, parts, snapshot


class Prepared:
    """The copies of one lab. `able` are the arms that this machine can make, `keep` what children inherit."""

    def __init__(
        self,
        lab: labs.Lab,
        study: Study,
        living: parts.Parts,
        chains: dict[str, layout.Chain],
        able: Sequence[str],
        keep: tuple[int, ...],
    ) -> None:
        self.lab, self.living, self.chains, self.able, self.keep = lab, living, chains, able, keep
        self.groups = [kept for arms in data_groups(study.arms) if (kept := [a for a in arms if a in able])]

    def save(self, label: str, arm: str) -> None:
        """Shut an arm's server down cleanly, keep a copy of its data under a label, and start it again.

        Other servers with the same data that are up get the copy.
        """
        server = self._server(arm)
        server.ensure()
        if not server.stop():
            raise SiteError(
                "the server did not shut down by itself, so its data cannot be copied; "
                f"see {server.log} and run the prepare stage again"
            )
        name = server.place.prepared
        snapshot.save(self.lab, server.data, server.made_with, label, server.user, self.keep, name)
        for other in self._servers():
            if other is not server and other.child is not None and other.place.prepared == name:
                self._put_back(other)
        server.ensure()

    def has(self, label: str | None, arm: str) -> bool:
        """Say whether there is prepared data for an arm, under this label (None: under any)."""
        server = self._server(arm)
        return snapshot.has(self.lab, server.made_with, label, server.place.prepared)

    def restore(self, label: str | None) -> None:
        """Put the prepared data back on every server and start it: cold, the same bytes every time."""
        if not all(self.has(label, group[0]) for group in self.groups):
            raise SiteError(
                "the lab holds no prepared data of this engine and data set; run the prepare stage again"
            )
        for server in self._servers():
            self._put_back(server)

    def _server(self, arm: str) -> Any:
        return self.living.get(self.chains[arm].server)

    def _servers(self) -> list[Any]:
        """Return every distinct server of the arms that this machine can make."""
        parts = dict.fromkeys(part for arm in self.able for part in self.chains[arm].servers)
        return [self.living.get(part) for part in parts]

    def _put_back(self, server: Any) -> None:
        if not server.data.is_dir():
            # It was never up in this lab: its folder, its accounts and what it was made with come first.
            server.ensure()
        server.stop()
        snapshot.heal(server.data)
        snapshot.put_back(self.lab, server.data, self.keep, server.place.prepared)
        server.ensure()
