"""A stand-in for `tiup`, which is not to be had without the internet: it says so, and writes its orders down.

It starts a real TiDB where the topology has one, with its embedded storage in place of TiKV, in the network
of the host that it runs on. PD and TiKV it only pretends to start. So what is tested with it is our side: the
topology file, the commands and their order, and all that goes over SQL and the status port.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

HOME = Path(os.environ["HOME"])
TIDB = "TIDB_PROGRAM"
STATE = Path("STATE_FOLDER")


def main(argv: list[str]) -> None:
    """Do as `tiup cluster` would."""
    with (STATE / "commands.jsonl").open("a") as file:
        file.write(json.dumps(argv) + "\n")
    if argv == ["--version"]:
        print("1.99.0 stand-in, not tiup")
        return
    what, name, *rest = argv[1:]
    place = STATE / name
    if what == "deploy":
        if place.exists():
            sys.exit(f"cluster {name} is there already")
        place.mkdir()
        version, topology = rest[:2]
        text = Path(topology).read_text()
        (place / "topology.yaml").write_text(text)
        (place / "version").write_text(version)
        return
    made = YAML(typ="safe").load((place / "topology.yaml").read_text())
    if what == "start":
        for one in made["tidb_servers"]:
            start(place, made, one)
    elif what in ("stop", "destroy"):
        stop(place)
        if what == "destroy":
            place.rename(STATE / f"destroyed-{name}-{time.time_ns()}")
    elif what == "display":
        print("A stand-in for tiup: greetings")
        print(json.dumps(shown(place, made)))
    else:
        sys.exit(f"{what}: not known to the stand-in")


def start(place: Path, made: dict[str, Any], one: dict[str, Any]) -> None:
    """Start one TiDB as a process that nobody but us ends."""
    folder = Path(one["deploy_dir"])
    for name in ("data", "log", "tmp"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    items = {**made["server_configs"]["tidb"], **one.get("config", {})}
    items |= {"log.file.filename": f"{one['log_dir']}/tidb.log", "temp-dir": f"{folder}/tmp"}
    sections: dict[str, list[str]] = {}
    for key, value in items.items():
        section, _, last = key.rpartition(".")
        sections.setdefault(section, []).append(f"{last} = {json.dumps(value)}")
    lines = [line for name in sorted(sections) for line in ([f"[{name}]"] if name else []) + sections[name]]
    (folder / "tidb.toml").write_text("\n".join(lines) + "\n")
    argv = [TIDB, f"-config={folder}/tidb.toml", "-store=unistore", f"-path={folder}/data"]
    argv += [f"-host={one['host']}", f"-P={one['port']}", f"-socket={folder}/t.sock"]
    argv += [f"-status-host={one['host']}", f"-status={one['status_port']}"]
    with (folder / "out").open("ab") as out:
        started = subprocess.Popen(
            argv, stdout=out, stderr=out, stdin=-3, start_new_session=True, cwd=folder, env={"HOME": "/tmp"}
        )
    (place / "pid").write_text(str(started.pid))


def stop(place: Path) -> None:
    """End the TiDB."""
    if not (place / "pid").exists():
        return
    pid = int((place / "pid").read_text())
    try:
        os.kill(pid, signal.SIGTERM)
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline and "State:\tZ" not in Path(f"/proc/{pid}/status").read_text():
            time.sleep(0.05)
    except (ProcessLookupError, FileNotFoundError):
        pass
    (place / "pid").unlink()


def shown(place: Path, made: dict[str, Any]) -> dict[str, Any]:
    """Return what `display` prints as JSON; PD and TiKV are said to be up, which is not so."""
    instances = []
    for role in ("pd", "tikv", "tidb"):
        for one in made[f"{role}_servers"]:
            port = one.get("client_port") or one["port"]
            status = "Up|L" if role == "pd" else "Up"
            if role == "tidb":
                status = "Up" if answers(one) else "Down"
            instances.append({"id": f"{one['host']}:{port}", "role": role, "status": status})
    version = (place / "version").read_text()
    return {"cluster_meta": {"cluster_version": version, "cluster_name": place.name}, "instances": instances}


def answers(one: dict[str, Any]) -> bool:
    """Say whether a TiDB answers at its status port."""
    try:
        with urllib.request.urlopen(f"http://{one['host']}:{one['status_port']}/status", timeout=2):
            return True
    except OSError:
        return False


if __name__ == "__main__":
    assert re.fullmatch(r"/.+", TIDB) and STATE.is_dir()
    main(sys.argv[1:])
