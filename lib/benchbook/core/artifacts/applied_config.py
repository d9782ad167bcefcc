"""The settings files, command lines and manifests that were applied to arms: `data/STUDY/applied`.

Facts and runs name each by its SHA-256, as `config_hash`, `started_with` and their like, and a file's own
name has the first letters of it: my-14bcbd2ddc46.cnf. They are the same wherever a lab is, so in place of its
folder stands SERVER, and where a server listens is left out. No account is in them: passwords have files of
their own, which nothing here reads, and no command line has one.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from benchbook.core.util import files

# Under these names facts and identities hold a digest, or one a part.
DIGESTS = frozenset(
    {"config_hash", "proxy_config_hash", "topology_sha256", "manifests", "started_with", "proxy_started_with"}
)
# A part without a settings file, such as a hop, has the digest of no text.
NOTHING = hashlib.sha256(b"").hexdigest()
_LETTERS = 12


def digest_text(text: str) -> str:
    """SHA-256 of a text, its name in facts and runs."""
    return hashlib.sha256(text.encode()).hexdigest()


def write_texts(folder: Path, applied: Iterable[tuple[str, str]]) -> None:
    """Write each text once, whatever it is called the second time; `applied` has pairs of name and text."""
    folder.mkdir(parents=True, exist_ok=True)
    by_digest: dict[str, tuple[str, str]] = {}
    for name, text in applied:
        # The name has the first letters of the digest: my.cnf is kept as my-14bcbd2ddc46.cnf.
        sha256, file = digest_text(text), Path(name)
        by_digest.setdefault(sha256, (f"{file.stem}-{sha256[:_LETTERS]}{file.suffix}", text))
    kept = dict(by_digest.values())
    for file in folder.iterdir():
        if file.name not in kept:
            file.unlink()
    for name, text in kept.items():
        files.write_text(folder / name, text)


def find_digests(value: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """The dotted name and the digest of each settings file that facts or an identity tell of."""
    for key, item in value.items() if isinstance(value, Mapping) else ():
        at = f"{name}.{key}" if name else str(key)
        if key in DIGESTS and isinstance(item, str):
            yield at, item
        elif key in DIGESTS and isinstance(item, Mapping):
            yield from ((f"{at}.{part}", entry) for part, entry in item.items() if isinstance(entry, str))
        else:
            yield from find_digests(item, at)
