"""What servers of databases share on every machine, beyond what all supervised programs do."""

from __future__ import annotations

from pathlib import PurePosixPath

from benchbook.core.errors import SiteError
from benchbook.sites import sql
from benchbook.sites.machine.supervised import Supervised


class Server(Supervised):
    """One server with its program (`binary`) and a data folder, which `prepared.make` makes."""

    binary: str
    socket: str

    @property
    def socket_path(self) -> str:
        """Its Unix socket on its machine."""
        return self.machine.socket(self.socket)

    @property
    def data(self) -> PurePosixPath:
        """Its data folder."""
        return self.folder / "data"

    def _must_be(self, asked: str | None, remedy: str, *known: str) -> None:
        """Refuse a program of another version than the one asked for; `known` are names of its own.

        `remedy` goes before the key of another program.
        """
        if not any(sql.is_version(one, asked) for one in known):
            raise SiteError(
                f"engine.version: asked {asked}, {self.binary}{self._where} is {known[0]}; {remedy} "
                f"{self._key}"
            )

    @property
    def _key(self) -> str:
        """Where another program is named."""
        return "in engine.binary" if self.machine.host is None else "under `programs` in the inventory"

    def _last_words(self, mark: int) -> str:
        return f"{super()._last_words(mark)}\n  (or check engine.settings)"
