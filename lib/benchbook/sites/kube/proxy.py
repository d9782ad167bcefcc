"""A proxy in a pod of its own, and HAProxy there: the files it reads, and how it is started. Pure."""

from __future__ import annotations

from abc import ABC, abstractmethod

from benchbook.core import traits
from benchbook.sites import load
from benchbook.sites.proxies.haproxy import DEFAULTS


class Proxy(ABC):
    """What a proxy's pod is made of; its traits name the class (`pod`)."""

    @classmethod
    @abstractmethod
    def files(cls, port: int, server: str, behind: int, cores: float | None) -> dict[str, str]:
        """Return the files of its ConfigMap: it listens on `port` and leads to `server`:`behind`."""

    @classmethod
    @abstractmethod
    def command(cls, folder: str) -> list[str]:
        """Return its command line; its files are in `folder`."""


def of(program: str) -> type[Proxy]:
    """Return what makes the pod of a proxy that has one."""
    return load(str(traits.proxy(program).pod))  # type: ignore[no-any-return]


# Connections follow from the open files that a container is allowed, which may be a thousand million.
CONFIG = f"""global
    fd-hard-limit 65536
    {{threads}}
{DEFAULTS}
frontend client
    bind :{{port}}
    default_backend server

backend server
    server db {{server}}:{{behind}}
"""
FILE = "haproxy.cfg"


class HAProxy(Proxy):
    """One HAProxy, with a thread for each core that it may use."""

    @classmethod
    def files(cls, port: int, server: str, behind: int, cores: float | None) -> dict[str, str]:
        threads = f"nbthread {max(1, round(cores))}" if cores else "# one thread a core"
        return {FILE: CONFIG.format(threads=threads, port=port, server=server, behind=behind)}

    @classmethod
    def command(cls, folder: str) -> list[str]:
        return ["haproxy", "-db", "-f", f"{folder}/{FILE}"]
