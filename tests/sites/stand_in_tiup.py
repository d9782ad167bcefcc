"""A stand-in for `tiup`, which is not to be had without the internet: it says so, and writes its orders down.

It starts what the topology has as real programs in the network of the host that it runs on: PD, stores of
unistore in place of TiKV, by the words that tiup gives TiKV, and TiDB. What is stood in for is tiup alone,
with its services of systemd and its way over SSH to other hosts.
"""

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

HOME = Path(os.environ["HOME"])
# Where pd-server, tikv-server, unistore-server and tidb-server are, and what is kept from call to call.
PROGRAMS = Path("PROGRAMS_FOLDER")
STATE = Path("STATE_FOLDER")
START_S = 90.0


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
        start(place, made)
    elif what in ("stop", "destroy"):
        stop(place)
        if what == "destroy":
            place.rename(STATE / f"destroyed-{name}-{time.time_ns()}")
    elif what == "display":
        print("A stand-in for tiup: greetings")
        print(json.dumps(shown(place, made)))
    else:
        sys.exit(f"{what}: not known to the stand-in")


def start(place: Path, made: dict[str, Any]) -> None:
    """Start PD, stores and TiDB, one after another, as processes that nobody but us ends."""
    pds = [f"{one['host']}:{one['client_port']}" for one in made["pd_servers"]]
    for one in made["pd_servers"]:
        peer = f"http://{one['host']}:{one['peer_port']}"
        at = f"http://{one['host']}:{one['client_port']}"
        words = [
            f"--name={one['name']}",
            f"--data-dir={one['data_dir']}",
            f"--initial-cluster={one['name']}={peer}",
        ]
        words += [f"--client-urls={at}", f"--peer-urls={peer}"]
        begin(place, made, "pd", one, words)
        wait(lambda at=at: asked(f"{at}/pd/api/v1/leader"))
    for one in made["tikv_servers"]:
        at = f"{one['host']}:{one['port']}"
        words = [f"--addr={at}", f"--advertise-addr={at}", f"--pd={','.join(pds)}"]
        words += [f"--status-addr={one['host']}:{one['status_port']}", f"--data-dir={one['data_dir']}"]
        begin(place, made, "tikv", one, words)
        wait(lambda at=at: is_up(made, at))
    for one in made["tidb_servers"]:
        words = ["--store=tikv", f"--path={','.join(pds)}", f"--host={one['host']}", f"-P={one['port']}"]
        words += [f"--advertise-address={one['host']}", f"--socket={one['deploy_dir']}/t.sock"]
        words += [f"--status-host={one['host']}", f"--status={one['status_port']}"]
        begin(place, made, "tidb", one, words)


def begin(place: Path, made: dict[str, Any], role: str, one: dict[str, Any], words: list[str]) -> None:
    """Start one part with the settings that the topology has for it."""
    folder = Path(one["deploy_dir"])
    for name in ("log", "tmp"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    items = {**made["server_configs"][role], **one.get("config", {})}
    if role == "tidb":
        items |= {"log.file.filename": f"{one['log_dir']}/tidb.log", "temp-dir": f"{folder}/tmp"}
    sections: dict[str, list[str]] = {}
    for key, value in items.items():
        section, _, last = key.rpartition(".")
        sections.setdefault(section, []).append(f"{last} = {json.dumps(value)}")
    lines = [line for name in sorted(sections) for line in ([f"[{name}]"] if name else []) + sections[name]]
    (folder / "part.toml").write_text("\n".join(lines) + "\n")
    argv = [str(PROGRAMS / f"{role}-server"), *words, f"--config={folder}/part.toml"]
    env = {"HOME": "/tmp", "PATH": os.environ.get("PATH", ""), "UNISTORE": str(PROGRAMS / "unistore-server")}
    with (folder / "out").open("ab") as out:
        started = subprocess.Popen(
            argv, stdout=out, stderr=out, stdin=-3, start_new_session=True, cwd=folder, env=env
        )
    with (place / "pids").open("a") as file:
        file.write(f"{started.pid}\n")


def stop(place: Path) -> None:
    """End all parts, the last one first."""
    if not (place / "pids").exists():
        return
    for pid in reversed((place / "pids").read_text().split()):
        try:
            os.kill(int(pid), signal.SIGTERM)
            deadline = time.monotonic() + 30
            while time.monotonic() < deadline and "State:\tZ" not in Path(f"/proc/{pid}/status").read_text():
                time.sleep(0.05)
        except (ProcessLookupError, FileNotFoundError):
            pass
    (place / "pids").unlink()


def wait(is_there: Callable[[], Any]) -> None:
    """Wait until a part is there; tiup would give up as well."""
    deadline = time.monotonic() + START_S
    while not is_there():
        if time.monotonic() > deadline:
            sys.exit("a part did not start in time")
        time.sleep(0.1)


def asked(address: str) -> Any:
    """Return what a part says as JSON; None if it does not answer."""
    try:
        with urllib.request.urlopen(address, timeout=2) as answer:
            return json.loads(answer.read())
    except (OSError, ValueError):
        return None


def is_up(made: dict[str, Any], address: str) -> bool:
    """Say whether PD knows the store at an address, and that it is up."""
    pd = made["pd_servers"][0]
    said = asked(f"http://{pd['host']}:{pd['client_port']}/pd/api/v1/stores") or {}
    known = {one["store"]["address"]: one["store"]["state_name"] for one in said.get("stores") or ()}
    return known.get(address) == "Up"


def shown(place: Path, made: dict[str, Any]) -> dict[str, Any]:
    """Return what `display` prints as JSON, each part's status as it says or PD says of it."""
    instances = []
    for role in ("pd", "tikv", "tidb"):
        for one in made[f"{role}_servers"]:
            port = one.get("client_port") or one["port"]
            at = f"{one['host']}:{port}"
            if role == "pd":
                status = "Up|L" if asked(f"http://{at}/pd/api/v1/leader") else "Down"
            elif role == "tikv":
                status = "Up" if is_up(made, at) else "Down"
            else:
                status = "Up" if asked(f"http://{one['host']}:{one['status_port']}/status") else "Down"
            instances.append({"id": at, "role": role, "status": status})
    version = (place / "version").read_text()
    return {"cluster_meta": {"cluster_version": version, "cluster_name": place.name}, "instances": instances}


if __name__ == "__main__":
    assert re.fullmatch(r"/.+", str(PROGRAMS)) and STATE.is_dir()
    main(sys.argv[1:])
