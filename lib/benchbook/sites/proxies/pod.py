"""A proxy in a pod of its own: the files it reads, and how it is started. Pure."""

from __future__ import annotations

from abc import ABC, abstractmethod

from benchbook.core import traits
from benchbook.sites import load


class Pod(ABC):
    """What a proxy's pod is made of; its traits name the class (`pod`)."""

    @classmethod
    @abstractmethod
    def files(cls, port: int, server: str, behind: int, cores: float | None) -> dict[str, str]:
        """Return the files of its ConfigMap: it listens on `port` and leads to `server`:`behind`."""

    @classmethod
    @abstractmethod
    def command(cls, folder: str) -> list[str]:
        """Return its command line; its files are in `folder`."""


def of(program: str) -> type[Pod]:
    """Return what makes the pod of a proxy that has one."""
    return load(str(traits.proxy(program).pod))  # type: ignore[no-any-return]
