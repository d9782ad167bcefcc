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
from benchbook.sites.kube import connect, engines
from benchbook.sites.kube.layout import Part, pod_of
from benchbook.sites.kube.namespace import StudyNamespace
from benchbook.sites.kube.pods import HOME
from benchbook.sites.kube.server import Server
from benchbook.sites.tidb import build, data
from benchbook.sites.tidb.status import NOT_COUNTED, Status


class TidbPod(Server):
    """A TiDB in its pod. The word that it was started with is a label in its settings."""

    crash = CRASH

    def __init__(self, space: StudyNamespace, part: Part) -> None:
        super().__init__(space, part)
        self.asked = engines.tidb_asked(space.study.engine)
        self.status = Status(pod_of(part), engines.status_port(part.port), space)

    @property
    def made_with(self) -> dict[str, Any]:
        """Variables and accounts are kept with the data."""
        variables = {key: settings.text(value) for key, value in self.asked.variables.items()}
        made = {"engine": "tidb", "image": self.space.here.images.server, "settings": variables}
        locks = f"{self.space.admin_password()} {self.space.lab.password()}"
        return made | {"locks": hashlib.sha256(locks.encode()).hexdigest()[:12]}

    def said_word(self) -> str | None:
        """Ask over SQL until it is known to be ours; then over the status port, which opens no session."""
        if self.word is not None:
            try:
                return self.status.config().get(engines.LABEL)
            except (OSError, ValueError):
                return None
        said = connect.ask(self.reach, self.space.admin_password(), "SELECT @@tidb_config")
        section, _, key = engines.LABEL.partition(".")
        return json.loads(said).get(section, {}).get(key) if said else None

    def begun(self) -> None:
        with (
            connect.open_one(self.reach, self.space.admin_password()) as connection,
            connection.cursor() as cursor,
        ):
            data.set_variables(cursor, self.asked.variables)
            data.must_be_closed(cursor)

    def who(self) -> dict[str, Any]:
        """Return version, commit and word; opens no session."""
        try:
            said, items = self.status.who(), self.status.config()
        except (OSError, ValueError) as error:
            raise SiteError(f"{pod_of(self.part)}: the server does not answer: {error}") from None
        word = {"word": items.get(engines.LABEL), "port": int(items["port"])}
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

    def _inform(self, connection: connect.Tunnelled, record: Any) -> None:
        connection.tell(record)
        record.info.update(books=self.status.books, connected=self.status.connected, **NOT_COUNTED)
