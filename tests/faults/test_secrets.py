"""A password of one tiny pipeline run is looked for in everything it left, and in what others can see."""

import base64
import contextlib
import gzip
import io
import itertools
import json
import os
import shlex
import signal
import subprocess
import time
import urllib.parse
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pymysql
import pytest
import sqlalchemy

from benchbook.sites import workspace as labs
from benchbook.sites.processes import procfs
from tests import beside, rooms
from tests.faults.scene import Scene
from tests.pipeline.clone import Clone, make

pytestmark = pytest.mark.server
PORT = rooms.port(420)


def forms(secret: str) -> dict[str, bytes]:
    """Return a secret as it is and as it may have been written."""
    raw = secret.encode()
    encoded = base64.b64encode(raw).decode().rstrip("=")
    return {
        "plain": raw,
        "url": urllib.parse.quote(secret, safe="").encode(),
        "url with plus": urllib.parse.quote_plus(secret).encode(),
        "base64": encoded[: len(encoded) // 4 * 4].encode(),
        "base64 for urls": base64.urlsafe_b64encode(raw).rstrip(b"=")[: len(encoded) // 4 * 4],
        "json": json.dumps(secret)[1:-1].encode(),
        "shell": shlex.quote(secret).strip("'").encode(),
        "hex": raw.hex().encode(),
    }


def holders(content: bytes, secret: str) -> list[str]:
    return [form for form, text in forms(secret).items() if text in content]


def everything(root: Path) -> Iterator[tuple[str, bytes]]:
    """Yield every file below a folder as it is and, of what packs others, what it holds."""
    for path in root.rglob("*"):
        if path.is_dir() and path.name == ".git":
            yield f"{path.relative_to(root)}/objects (all, packed or not)", every_object(path)
        if path.is_file() and not path.is_symlink():
            content = path.read_bytes()
            yield str(path.relative_to(root)), content
            yield from ((f"{path.relative_to(root)} ({name})", inner) for name, inner in unpacked(content))


def every_object(git: Path) -> bytes:
    """Return all that git holds, loose or packed, reachable or not."""
    argv = ["git", f"--git-dir={git}", "cat-file", "--batch-all-objects", "--batch"]
    return subprocess.run(argv, check=True, capture_output=True).stdout


def unpacked(content: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield what a Parquet file or an archive holds; a cache has no suffixes, so its first bytes tell."""
    if content.startswith(b"PAR1"):
        table = pq.read_table(io.BytesIO(content))
        names = [field.name for field in table.schema if pa.types.is_string(field.type)]
        texts = (str(text) for name in names for text in table[name].unique().to_pylist())
        yield "columns", "\n".join(texts).encode()
        yield "described", str(table.schema).encode()
    if content.startswith(b"\x1f\x8b"):
        # What a tar holds lies in it as it is; other files are packed alone.
        yield "unpacked", gzip.decompress(content)


class Watcher:
    """Look at the command line and the environment of every process, as root may."""

    def __init__(self) -> None:
        self.seen: set[bytes] = set()
        self.looks = 0

    def look(self) -> None:
        self.looks += 1
        for pid, name in itertools.product(procfs.list_pids(), ("cmdline", "environ")):
            with contextlib.suppress(OSError):
                self.seen.add(Path(f"/proc/{pid}/{name}").read_bytes())


@pytest.mark.faults
def test_no_artefact_and_no_process_shows_the_password(open_folder: Path, inject: Callable[..., None]):
    """Environments are read too, as root may: they are for the same user only, and hold nothing either."""
    inject("F44", "a canary in every form, through a whole pipeline")
    clone = make(open_folder / "secrets")
    clone.study(blocks=1, port=PORT)
    watcher = Watcher()
    with beside.again(watcher.look):
        code, said = clone.run("benchbook", "repro")
        assert code == 0, said
        _fail(clone)
        code, said_too = clone.run("benchbook", "export", "tiny")
        assert code == 0, said_too
        clone.commit("-f")
    password = labs.read_secret(next(clone.lab.rglob("sysbench.cnf")))[1]
    assert len(password) >= 30
    files = list(everything(clone.path))
    names = "\n".join(name for name, _ in files)
    for part in (
        "dvc.lock", ".dvc/cache/files", ".git/objects", "raw/", "applied/my-", "failed/", ".ipynb",
        "tiny.html", "tar.gz (unpacked)", "(columns)",
    ):  # fmt: skip
        assert part in names, part
    assert b"tiny/data/tiny/applied/" in dict(files)["tiny.tar.gz (unpacked)"]
    assert [name for name, content in files if holders(content, password)] == []
    assert holders((said + said_too).encode(), password) == []
    assert watcher.looks > 50 and any(b"sysbench" in seen for seen in watcher.seen)
    assert [seen for seen in watcher.seen if holders(seen, password)] == []
    # Where it may be: one file that only its owner reads, and what the server makes of it.
    files = [path for path in clone.lab.rglob("*") if path.is_file()]
    (kept,) = [path for path in files if password.encode() in path.read_bytes()]
    assert kept.name == "sysbench.cnf"
    assert kept.stat().st_mode & 0o077 == 0 and kept.parent.stat().st_mode & 0o077 == 0


def _fail(clone: Clone) -> None:
    """Have a stage fail whose pilots need the server, so that a failed notebook and its log are there too."""
    process = clone.start("benchbook", "stage", "warm-up", "tiny")
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        servers = [pid for pid in clone.processes() if procfs.read_program(pid) == "mariadbd"]
        if servers:
            time.sleep(0.3)
            # Each one, until the stage fails: one that only makes the data folder may have ended by itself.
            with contextlib.suppress(ProcessLookupError):
                os.kill(servers[0], signal.SIGKILL)
        time.sleep(0.05)
    process.communicate()


def test_errors_about_the_account_do_not_show_it(scene: Callable[..., Scene], inject: Callable[..., None]):
    inject("F44", "exceptions about the account")
    here = scene()
    endpoint = here.site.up("direct")
    user, password = labs.read_secret(endpoint.secret)
    said = [repr(endpoint), str(here.site.admin().url), repr(here.site.admin()), repr(here.site.lab)]
    here.sql("ALTER USER 'benchbook'@'127.0.0.1' IDENTIFIED BY 'another one'")
    try:
        pymysql.connect(host="127.0.0.1", port=endpoint.port, user=user, password=password)
    except pymysql.err.OperationalError as error:
        said.append(repr(error))
    try:
        statement = "ALTER USER 'nobody'@'127.0.0.1' IDENTIFIED BY %s"
        here.site.admin().connect().exec_driver_sql(statement, (password,))
    except sqlalchemy.exc.SQLAlchemyError as error:
        said.append(str(error))
    here.sql(f"ALTER USER 'benchbook'@'127.0.0.1' IDENTIFIED BY '{password}'")
    assert len(said) == 6
    assert not [text for text in said if holders(text.encode(), password)]
