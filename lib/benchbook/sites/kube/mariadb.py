"""MariaDB in a pod: its settings, and what it says of itself over SQL."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchbook.sites import settings, sql
from benchbook.sites.engines.mariadb import CRASH
from benchbook.sites.kube import connect
from benchbook.sites.kube.layout import Part, pod_of
from benchbook.sites.kube.namespace import StudyNamespace
from benchbook.sites.kube.pods import HOME
from benchbook.sites.kube.server import Server


class MariaDB(Server):
    """A MariaDB in its pod. The word that it was started with is one of its variables."""

    crash = CRASH

    def __init__(self, space: StudyNamespace, part: Part) -> None:
        super().__init__(space, part)
        self.asked = settings.complete(space.study.engine.settings)

    @property
    def made_with(self) -> dict[str, Any]:
        fixed = {key: settings.text(self.asked[key]) for key in settings.AT_CREATION if key in self.asked}
        return {"engine": "mariadb", "image": self.space.here.images.server, "settings": fixed}

    def said_word(self) -> str | None:
        return connect.ask(self.reach, self.space.admin_password(), "SELECT @@report_host")

    def begun(self) -> None:
        """Do nothing: MariaDB reads all settings and accounts from its files."""

    def who(self) -> dict[str, Any]:
        return sql.identity(self.admin(), f"{pod_of(self.part)}: the server", with_word=True)

    def facts(self) -> dict[str, Any]:
        variables = sql.variables(self.admin())
        image = self.of_image(variables["version"], 'sha256sum "$(command -v mariadbd)"')
        chosen = self.space.study.engine.settings
        return settings.taken(self.asked, chosen, _without_host(variables), Path(HOME)) | image


def _without_host(variables: dict[str, str]) -> dict[str, str]:
    """Return a server's variables without its pod's name, after which it calls its files."""
    host = variables.get("hostname") or ""
    return {key: value.replace(host, "HOST") if host else value for key, value in variables.items()}
