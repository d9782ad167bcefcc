"""Common base of all proxies: a program, the servers behind it, and the arm's demands on it."""

import abc
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchbook.core.study import descriptors
from benchbook.core.study.descriptors import ProxyDescriptor as Traits
from benchbook.core.study.study_arm import ELSEWHERE
from benchbook.core.study.study_hosts import HostProxy
from benchbook.core.util.errors import SiteError
from benchbook.sites import load, sql, workspace
from benchbook.sites.agent import files
from benchbook.sites.agent.facts import VERSION
from benchbook.sites.machine import local_machine
from benchbook.sites.machine.capabilities import install_command
from benchbook.sites.machine.contract import Machine
from benchbook.sites.machine.supervised_process import Supervised

NOTHING = HostProxy()
WAY_ON_HOSTS = "`programs` in the inventory"


class Proxy(Supervised, abc.ABC):
    """One proxy before `servers` (ADDRESS:PORT), as its arm `asked`; started by `ensure`."""

    what = "the proxy"
    has_standby = False
    """Whether its servers after the first take over only while that one is gone."""
    traits: Traits
    version_words = re.compile(VERSION)

    def __init__(
        self,
        machine: Machine,
        place: workspace.PartLocation,
        servers: Sequence[str],
        requests: HostProxy = NOTHING,
        arm: str = "",
    ) -> None:
        super().__init__(machine, place, machine.account(self.traits.account))
        self.servers, self.asked, self.arm = tuple(servers), requests, arm
        self.has_children = self.traits.has_children

    def ensure(self) -> None:
        """Start the proxy unless it runs."""
        if self.is_up:
            return
        self.version()
        self._must_have_ports(*range(self.place.port, self.place.port + self.traits.ports))
        self._start()

    @abc.abstractmethod
    def _start(self) -> None:
        """Write its settings (`_configure`), start its program and define its readiness (`_begin`)."""

    @classmethod
    def unable_to_capture(cls, program: Path) -> str | None:
        """Reason that a program can't record the traffic through it, or None."""
        return None

    @classmethod
    def obstacle(cls, host_proxy: HostProxy | None = None) -> str | None:
        """Reason if this machine has no such proxy, or none of the version asked for, else None."""
        program = cls.traits.programs[0]
        if local_machine.find_program(program) is None:
            return cls._missing(f"its path into {local_machine.name_variable(program)}")
        version = host_proxy.version if host_proxy is not None else None
        if version is None or sql.is_version((result := cls.installed()) or "", version):
            return None
        variable = local_machine.name_variable(program)
        return f"{program} {version}: {result} is here; put the path of {version} into {variable}"

    @classmethod
    def installed(cls) -> str | None:
        """Version that this machine has, or None."""
        if (path := local_machine.find_program(cls.traits.programs[0])) is None:
            return None
        match = cls.version_words.search(files.read_output([path, *cls.traits.version_by]))
        return match[1] if match else None

    @property
    def binary(self) -> str:
        """Its program; SiteError if there is none."""
        program = self.traits.programs[0]
        if (result := self.machine.program(program)) is not None:
            return result
        place = f"{self.machine.host}: " if self.machine.host is not None else ""
        raise SiteError(
            f"{place}{self._missing(self._way)}, or leave the arms with `access: {self.traits.name}` out"
        )

    @property
    def threads(self) -> int:
        """The cores that it may use."""
        return len(self.place.where.cpus or ()) or self.machine.cores

    def identity(self) -> dict[str, Any]:
        return self.seen("proxy_")

    def _settings(self) -> dict[str, str]:
        """Settings that the proxy tells over its own interface; SiteError if it does not answer."""
        return {}

    def _is_answering(self) -> bool:
        try:
            return bool(self._settings()) and self.holds_port()
        except SiteError:
            return False

    def _verify_settings(self, wanted: Mapping[str, str], held: Mapping[str, str]) -> None:
        """Raise SiteError with each setting that the proxy tells otherwise than it was asked for."""
        pairs = {name: (held.get(name), value) for name, value in wanted.items() if held.get(name) != value}
        if pairs:
            wrong = "; ".join(f"{name} is {has}, asked {value}" for name, (has, value) in pairs.items())
            raise SiteError(f"{self.traits.product} did not take its settings: {wrong}; see {self.log}")

    def facts(self) -> dict[str, Any]:
        """Facts of the proxy; a class adds its settings, as the proxy itself reports them."""
        self.running()
        return {
            "name": self.traits.name,
            "version": self.version(),
            **({"settings": dict(self.asked.settings)} if self.asked.settings else {}),
            **({"servers": len(self.servers)} if len(self.servers) > 1 else {}),
            **self.program_facts(self.binary),
        }

    def version(self) -> str | None:
        """Version of its program, or None; SiteError if the arm asks for another."""
        match = self.version_words.search(self.machine.says([self.binary, *self.traits.version_by]))
        result = match[1] if match else None
        if not sql.is_version(result or "", self.asked.version):
            raise SiteError(
                f"arms.{self.arm}.proxy.version: asked {self.asked.version}, "
                f"{self.machine.host or 'this machine'} has {result}; put that version there, or {self._way}"
            )
        return result

    @property
    def _way(self) -> str:
        """Way to name its program in place of the one in the PATH."""
        variable = local_machine.name_variable(self.traits.programs[0])
        return f"its path into {variable if self.machine.host is None else WAY_ON_HOSTS}"

    @classmethod
    def _missing(cls, way: str) -> str:
        program = cls.traits.programs[0]
        if not cls.traits.packages:
            return f"{program} is not in the PATH; put it there, or {way}. {ELSEWHERE}"
        return f"{program} is not installed; `{install_command(program)}`, or {way}"


class ProxyPod(abc.ABC):
    """Contents of a proxy's pod; its traits name the class (`pod`)."""

    @classmethod
    @abc.abstractmethod
    def files(cls, port: int, server: str, behind: int, cores: float | None) -> dict[str, str]:
        """Files of its ConfigMap: it listens on `port` and leads to `server`:`behind`."""

    @classmethod
    @abc.abstractmethod
    def command(cls, folder: str) -> list[str]:
        """Its command line; its files are in `folder`."""


def load_pod(program: str) -> type[ProxyPod]:
    """Class of the pod's contents, for a proxy that has one."""
    return load(str(descriptors.find_proxy(program).pod))  # type: ignore[no-any-return]
