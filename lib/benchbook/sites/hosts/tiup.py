"""The commands of `tiup` that make, start, show, stop and remove a cluster, run by the control host's agent.

No parameter of them is a secret, and no shell reads them.
"""

from __future__ import annotations

import json
from typing import Any

from benchbook.core.study_hosts import Tiup
from benchbook.sites.agent.facts import Look
from benchbook.sites.hosts.host import Host
from benchbook.sites.hosts.machine import work


class Commands:
    """What can be asked of `tiup` for one cluster; `look` is what the control host is."""

    def __init__(self, control: Host, look: Look, tiup: Tiup, name: str) -> None:
        self.control, self.tiup, self.name = control, tiup, name
        self.binary, self.home = str(look.tools["tiup"]), look.home

    def deploy(self, version: str, topology: str) -> None:
        """Make the cluster from a topology file on the control host."""
        key = self.tiup.identity_file
        words = ["--user", self.tiup.login, "--yes"]
        words += [] if key is None else ["--identity_file", key.replace("~", self.home, 1)]
        self._do("deploy", self.name, version, topology, *words)

    def start(self) -> None:
        self._do("start", self.name, "--yes")

    def stop(self) -> None:
        self._do("stop", self.name, "--yes")

    def destroy(self) -> None:
        self._do("destroy", self.name, "--yes")

    def shown(self) -> dict[str, Any]:
        """Return what it says of the cluster: `cluster_meta`, and `instances` with id, role and status."""
        said = self._do("display", self.name, "--format", "json")
        # It may greet before that.
        known = json.loads(said[said.index("{") :]) if "{" in said else {}
        return {"cluster_meta": {}, "instances": [], **known}

    def note(self) -> None:
        """Write down on the control host what ends the cluster, whoever ends us."""
        self.control.call(
            "at_end",
            name=self.name,
            end=[self.binary, "cluster", "stop", self.name, "--yes"],
            purge=[self.binary, "cluster", "destroy", self.name, "--yes"],
            env=self._env,
        )

    def _do(self, *words: str) -> str:
        wrong = f"`tiup cluster {words[0]}` failed"
        argv = [self.binary, "cluster", *words]
        return work(self.control, wrong, argv, self.tiup.wait_s, None, self._env)

    @property
    def _env(self) -> dict[str, str]:
        return {"HOME": self.home}
