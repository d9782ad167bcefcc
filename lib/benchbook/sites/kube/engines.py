"""How each engine is started in its pod: the files of its ConfigMap. Pure.

`engine.sh` gives two functions to the pod's first process: `make_data`, and `serve WORD`, which becomes the
server. The settings are those of the engine on one machine, but for where it lives.
"""

from __future__ import annotations

import shlex
from typing import Any

from benchbook.core.errors import SiteError
from benchbook.sites import settings
from benchbook.sites.kube.pods import ACCOUNT, CONFIG, HOME

OWN = f"{HOME}/own"
MARIADB = """make_data() {{
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
# TiDB keeps its data in its own process: there is nothing to copy, so it is loaded anew.
TIDB = """make_data() {{ mkdir -p "$data"; }}
serve() {{
  exec tidb-server --config={config}/tidb.toml --store=unistore --path="$data" --host=0.0.0.0 -P {port} \\
    --status={status} --initialize-insecure=false --initialize-sql-file={account}/init.sql
}}
"""


def files(engine: Any, port: int) -> dict[str, str]:
    """Return the files of an engine's ConfigMap by name; SiteError for an engine that has none."""
    if engine.name == "mariadb":
        return {"engine.sh": _mariadb_shell(engine), "my.cnf": my_cnf(engine, port)}
    if engine.name == "tidb":
        shell = TIDB.format(config=CONFIG, port=port, status=port + 10_000, account=ACCOUNT)
        return {"engine.sh": shell, "tidb.toml": _toml(engine)}
    raise SiteError(f"engine.name: {engine.name}: not made in a cluster; write mariadb or tidb")


def my_cnf(engine: Any, port: int) -> str:
    """Return a server's settings file; its user reads accounts from a file of the Secret."""
    forbidden = settings.reserved(engine.settings)
    if forbidden:
        raise SiteError(f"engine.settings.{forbidden[0]}: set by the site itself; remove it from the study")
    places = {
        "port": port,
        # Who may come in is for the account, which has a password, and for the cluster's own rules.
        "bind_address": "0.0.0.0",
        "socket": f"{OWN}/m.sock",
        "datadir": f"{HOME}/data",
        "tmpdir": OWN,
        "pid_file": f"{OWN}/m.pid",
        "secure_file_priv": OWN,
        "init_file": f"{ACCOUNT}/init.sql",
    }
    lines = [f"{key}={value}" for key, value in places.items()]
    lines += [
        f"{key}={settings.text(value)}" for key, value in sorted(settings.complete(engine.settings).items())
    ]
    return "[mariadbd]\n" + "\n".join(lines) + "\n"


def accounts(password: str, admin: str, admin_password: str, user: str, schema: str) -> str:
    """Return the statements with which a server makes its schema and its two accounts at each start.

    The administrator is let in from the pod itself alone, which is where a forwarded port comes out.
    """
    made = []
    for name, host, word, right in (
        (user, "%", password, f"ALL PRIVILEGES ON {schema}.*"),
        (admin, "127.0.0.1", admin_password, "ALL PRIVILEGES ON *.*"),
    ):
        account = f"'{name}'@'{host}'"
        made += [
            f"CREATE USER IF NOT EXISTS {account} IDENTIFIED BY '{word}';",
            f"ALTER USER {account} IDENTIFIED BY '{word}';",
            f"GRANT {right} TO {account};",
        ]
    return "\n".join([f"CREATE DATABASE IF NOT EXISTS {schema};", *made]) + "\n"


def _mariadb_shell(engine: Any) -> str:
    asked = settings.complete(engine.settings)
    fixed = " ".join(
        shlex.quote(f"--{key}={settings.text(asked[key])}") for key in settings.AT_CREATION if key in asked
    )
    return MARIADB.format(own=OWN, config=CONFIG, fixed=fixed)


def _toml(engine: Any) -> str:
    """Return TiDB's own settings with dots as tables; a study's other settings are variables, set later."""
    lines = []
    for key, value in sorted(engine.settings.items()):
        if "." in key:
            written = f'"{value}"' if isinstance(value, str) else settings.text(value).lower()
            lines.append(f"{key} = {written}")
    return "\n".join(lines) + "\n"
