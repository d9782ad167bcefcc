"""What all proxies share: a program, the servers behind it, and what an arm asks of it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from benchbook.core.errors import SiteError
from benchbook.core.study_hosts import HostProxy
from benchbook.core.traits import Proxy as Traits
from benchbook.sites import lab as labs
from benchbook.sites import sql
from benchbook.sites.agent import files
from benchbook.sites.agent.facts import VERSION
from benchbook.sites.machine import here
from benchbook.sites.machine.abilities import install_command
from benchbook.sites.machine.contract import Machine
from benchbook.sites.machine.supervised import Supervised

NOTHING = HostProxy()


class Proxy(Supervised):
    """One proxy, in the foreground under supervision. Nothing is started until `ensure`.

    `servers` are what it relays to, as ADDRESS:PORT; `asked` is what its arm asks of it. A class says
    what it is in `traits`.
    """

    what = "the proxy"
    traits: Traits
    pools_sessions = False
    version_words = re.compile(VERSION)

    def __init__(
        self,
        machine: Machine,
        place: labs.Place,
        servers: Sequence[str],
        asked: HostProxy = NOTHING,
        arm: str = "",
    ) -> None:
        super().__init__(machine, place, machine.account(self.traits.account))
        self.servers, self.asked, self.arm = tuple(servers), asked, arm

    @classmethod
    def obstacle(cls) -> str | None:
        """Return why this machine has no such proxy and what to do about it, or None."""
        program = cls.traits.programs[0]
        return None if here.find(program) else cls._missing(f"its path into {here.variable(program)}")

    @classmethod
    def installed(cls) -> str | None:
        """Return the version that this machine has, or None."""
        if (path := here.find(cls.traits.programs[0])) is None:
            return None
        match = cls.version_words.search(files.says([path, *cls.traits.version_by]))
        return match[1] if match else None

    @property
    def binary(self) -> str:
        """Its program; SiteError if there is none."""
        program = self.traits.programs[0]
        if (found := self.machine.program(program)) is not None:
            return found
        is_here = self.machine.host is None
        way = here.variable(program) if is_here else "`programs` in the inventory"
        raise SiteError(
            f"{'' if is_here else self.machine.host + ': '}{self._missing(f'its path into {way}')}, or leave "  # type: ignore[operator]
            f"the arms with `access: {self.traits.name}` out"
        )

    @property
    def threads(self) -> int:
        """The cores that it may use."""
        return len(self.place.where.cpus or ()) or self.machine.cores

    def identity(self) -> dict[str, Any]:
        """Return what tells this very proxy from any other; makes no connection through it."""
        return self.seen("proxy_")

    def facts(self) -> dict[str, Any]:
        """Return what the proxy is; a class adds what it is set to, as the proxy itself says."""
        self.running()
        return {
            "name": self.traits.name,
            "version": self.version(),
            **({"settings": dict(self.asked.settings)} if self.asked.settings else {}),
            **({"servers": len(self.servers)} if len(self.servers) > 1 else {}),
            **self.program_facts(self.binary),
        }

    def version(self) -> str | None:
        """Return the version of its program, or None; SiteError if the arm asks for another."""
        match = self.version_words.search(self.machine.says([self.binary, *self.traits.version_by]))
        found = match[1] if match else None
        if not sql.is_version(found or "", self.asked.version):
            raise SiteError(
                f"arms.{self.arm}.proxy.version: asked {self.asked.version}, {self.machine.host} has "
                f"{found}; put that version there, or its path under `programs` in the inventory"
            )
        return found

    @classmethod
    def _missing(cls, way: str) -> str:
        program = cls.traits.programs[0]
        if not cls.traits.packages:
            return f"{program} is not in the PATH; put it there, or {way}"
        return f"{program} is not installed; `{install_command(program)}`, or {way}"
