"""TiDB with its embedded storage in a pod: its settings, and what it tells over SQL and its status port."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import sqlalchemy

from benchbook.core.errors import SiteError
from benchbook.sites import settings, sql
from benchbook.sites.engines.tidb import CRASH, STORAGE
from benchbook.sites.kube import accounts, connect
from benchbook.sites.kube.layout import Part, pod_of
from benchbook.sites.kube.namespace import StudyNamespace
from benchbook.sites.kube.pods import ACCOUNT, CONFIG, HOME, OWN
from benchbook.sites.kube.server import Server
from benchbook.sites.tidb import build, config, data
from benchbook.sites.tidb.status import NOT_COUNTED, Status

# The word of each start is a label, which TiDB itself does nothing with.
SHELL = """make_data() {{ mkdir -p "$data"; }}
serve() {{
  mkdir -p {own}/tmp
  sed "s/{word}/$1/" {config}/tidb.toml >{own}/tidb.toml
  exec tidb-server -config={own}/tidb.toml -store=unistore -path="$data" -socket={own}/t.sock \\
    -host=0.0.0.0 -P={port} -status-host=127.0.0.1 -status={status} -initialize-sql-file={account}/{file}
}}
"""
WORD, LABEL = "@WORD@", "labels.benchbook"
# The first version that makes its accounts before it listens.
SINCE = 6.6
STATUS_PORTS = 10_000
# The account of a new TiDB that anybody may use.
OPEN = ("'root'@'%'",)


class TidbPod(Server):
    """A TiDB in its pod. The word that it was started with is a label in its settings."""

    crash = CRASH

    def __init__(self, space: StudyNamespace, part: Part) -> None:
        super().__init__(space, part)
        self.asked = _asked(space.study.engine)
        self.status = Status(pod_of(part), status_port(part.port), space)

    @classmethod
    def files(cls, engine: Any, port: int) -> dict[str, str]:
        """The settings have a place for the word of each start."""
        where = {"own": OWN, "config": CONFIG, "account": ACCOUNT, "file": accounts.FILE}
        shell = SHELL.format(**where, port=port, status=status_port(port), word=WORD)
        places = {"temp-dir": f"{OWN}/tmp", "tmp-storage-path": f"{OWN}/tmp", LABEL: WORD}
        return {"engine.sh": shell, "tidb.toml": config.toml(places | _asked(engine).items)}

    @classmethod
    def secret(cls, password: str, admin_password: str) -> dict[str, str]:
        """At its first start TiDB has an administrator of its own without a password."""
        return {accounts.FILE: accounts.statements(password, admin_password, OPEN)}

    @classmethod
    def socket(cls, port: int) -> Path:
        return Path(f"{OWN}/t.sock")

    @classmethod
    def foreseen(cls, engine: Any) -> list[str]:
        if engine.version is None or tuple(map(int, engine.version.split(".")[:2])) >= (6, 6):
            return []
        return [
            f"engine.version: {engine.version}: before {SINCE} TiDB lets anybody in before it has accounts; "
            f"write {SINCE} or a later one"
        ]

    @property
    def made_with(self) -> dict[str, Any]:
        """Variables and accounts are kept with the data."""
        variables = {key: settings.text(value) for key, value in self.asked.variables.items()}
        locks = f"{self.space.admin_password()} {self.space.lab.password()}"
        made = self.made_of | {"settings": variables}
        return made | {"locks": hashlib.sha256(locks.encode()).hexdigest()[:12]}

    def said_word(self) -> str | None:
        """Ask over SQL until it is known to be ours; then over the status port, which opens no session."""
        if self.word is not None:
            try:
                return self.status.config().get(LABEL)
            except (OSError, ValueError):
                return None
        said = connect.ask(*self.reached, "SELECT @@tidb_config")
        section, _, key = LABEL.partition(".")
        return json.loads(said).get(section, {}).get(key) if said else None

    def begun(self) -> None:
        with connect.open_one(*self.reached) as connection, connection.cursor() as cursor:
            data.set_variables(cursor, self.asked.variables)
            data.must_be_closed(cursor)

    def who(self) -> dict[str, Any]:
        """Return version, commit and word; opens no session."""
        try:
            said, items = self.status.who(), self.status.config()
        except (OSError, ValueError) as error:
            raise SiteError(f"{pod_of(self.part)}: the server does not answer: {error}") from None
        word = {"word": items.get(LABEL), "port": int(items["port"])}
        return {"version": said["version"], "git_hash": said["git_hash"], "datadir": items["path"], **word}

    def admin(self) -> sqlalchemy.Engine:
        """Return the administrative account; each connection is new, and tells of the server beside SQL."""
        engine = super().admin()
        sqlalchemy.event.listen(engine, "connect", self._inform)
        return engine

    def facts(self) -> dict[str, Any]:
        version = build.version_in(self.run("tidb-server", "-V"))
        image = self.of_image(version, 'sha256sum "$(command -v tidb-server)"')
        variables, chosen = sql.variables(self.admin()), self.space.study.engine.settings
        read = self.asked.taken(chosen, self.status.config(), variables)
        return data.facts(version, STORAGE, read, variables, Path(HOME)) | image

    def _inform(self, connection: Any, record: Any) -> None:
        connect.tell(connection, record)
        record.info.update(books=self.status.books, connected=self.status.connected, **NOT_COUNTED)


def status_port(port: int) -> int:
    """Return the port on a pod's loopback at which a TiDB tells of itself."""
    return port + STATUS_PORTS if port + STATUS_PORTS < 1 << 16 else port - STATUS_PORTS


def _asked(engine: Any) -> config.Asked:
    """Return what TiDB is asked to be; SiteError for what is the site's own, or for a version too old."""
    settings.must_be_free(engine)
    for why in TidbPod.foreseen(engine):
        raise SiteError(why)
    return config.complete(engine.settings, engine.version or str(SINCE))
