"""MariaDB in a pod: its files, and what it says of itself over SQL."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

from benchbook.sites import settings, sql
from benchbook.sites.engines.mariadb import CRASH
from benchbook.sites.kube import accounts, connect
from benchbook.sites.kube.layout import Part, pod_of
from benchbook.sites.kube.namespace import StudyNamespace
from benchbook.sites.kube.pods import ACCOUNT, CONFIG, HOME, OWN
from benchbook.sites.kube.server import Server

SHELL = """make_data() {{
  mkdir -p {own} && chown mysql {own} &&
    rm -rf "$data.new" &&
    mariadb-install-db --no-defaults --user=mysql --datadir="$data.new" \\
      --auth-root-authentication-method=socket --skip-test-db --skip-name-resolve --skip-log-bin {fixed} &&
    mv "$data.new" "$data"
}}
serve() {{
  mkdir -p {own} && chown mysql {own}
  exec mariadbd --defaults-file={config}/my.cnf --user=mysql --report-host="$1"
}}
"""


class MariaDB(Server):
    """A MariaDB in its pod. The word that it was started with is one of its variables."""

    crash = CRASH

    def __init__(self, space: StudyNamespace, part: Part) -> None:
        super().__init__(space, part)
        self.asked = self.complete(space.study.engine)

    @classmethod
    def complete(cls, engine: Any) -> dict[str, settings.Value]:
        """Return all settings that are made of a server."""
        return settings.complete(engine.settings)

    @classmethod
    def files(cls, engine: Any, port: int) -> dict[str, str]:
        asked = cls.complete(engine)
        fixed = " ".join(
            shlex.quote(f"--{key}={settings.text(asked[key])}")
            for key in settings.AT_CREATION
            if key in asked
        )
        shell = SHELL.format(own=OWN, config=CONFIG, fixed=fixed)
        return {"engine.sh": shell, "my.cnf": cls._my_cnf(engine, port)}

    @classmethod
    def secret(cls, password: str, admin_password: str) -> dict[str, str]:
        """MariaDB reads the statements at each start."""
        return {accounts.FILE: accounts.statements(password, admin_password)}

    @classmethod
    def socket(cls, port: int) -> Path:
        return Path(f"{OWN}/m.sock")

    @property
    def made_with(self) -> dict[str, Any]:
        fixed = {key: settings.text(self.asked[key]) for key in settings.AT_CREATION if key in self.asked}
        return self.made_of | {"settings": fixed}

    def said_word(self) -> str | None:
        return connect.ask(*self.reached, "SELECT @@report_host")

    def begun(self) -> None:
        """Do nothing: MariaDB reads all settings and accounts from its files."""

    def who(self) -> dict[str, Any]:
        return sql.identity(self.admin(), f"{pod_of(self.part)}: the server", with_word=True)

    def facts(self) -> dict[str, Any]:
        variables = sql.variables(self.admin())
        image = self.of_image(variables["version"], 'sha256sum "$(command -v mariadbd)"')
        chosen = self.space.study.engine.settings
        return settings.taken(self.asked, chosen, _without_host(variables), Path(HOME)) | image

    @classmethod
    def _my_cnf(cls, engine: Any, port: int) -> str:
        settings.must_be_free(engine)
        places = {
            "port": port,
            # Who may come in is for the account, which has a password, and for the cluster's own rules.
            "bind_address": "0.0.0.0",
            "socket": cls.socket(port),
            "datadir": f"{HOME}/data",
            "tmpdir": OWN,
            "pid_file": f"{OWN}/m.pid",
            "secure_file_priv": OWN,
            "init_file": f"{ACCOUNT}/{accounts.FILE}",
        }
        lines = [f"{key}={value}" for key, value in places.items()]
        lines += [f"{key}={settings.text(value)}" for key, value in sorted(cls.complete(engine).items())]
        return "[mariadbd]\n" + "\n".join(lines) + "\n"


def _without_host(variables: dict[str, str]) -> dict[str, str]:
    """Return a server's variables without its pod's name, after which it calls its files."""
    host = variables.get("hostname") or ""
    return {key: value.replace(host, "HOST") if host else value for key, value in variables.items()}
