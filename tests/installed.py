"""A package with engines and proxies, as one of somebody else's that is installed beside ours."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from benchbook.core.study import descriptors

OTHERS = {
    "benchbook.proxies": {"socat": "tests.others.socat_proxy:TRAITS"},
    "benchbook.engines": {
        "small": "tests.others.small_engine:TRAITS",
        "percona": "tests.others.percona:TRAITS",
    },
}


@contextmanager
def package(folder: Path, points: Mapping[str, Mapping[str, str]] = OTHERS) -> Iterator[None]:
    """Have a package with entry points (group → name → MODULE:NAME) while the block runs."""
    made = folder / "site" / "others-1.0.dist-info"
    made.mkdir(parents=True)
    (made / "METADATA").write_text("Metadata-Version: 2.1\nName: others\nVersion: 1.0\n")
    lines = [
        f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in one.items())
        for group, one in points.items()
    ]
    (made / "entry_points.txt").write_text("\n".join(lines))
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(made.parent)
        forget()
        try:
            yield
        finally:
            patch.undo()
            forget()


def forget() -> None:
    """Look for engines and proxies anew when they are asked for next."""
    descriptors.load_engines.cache_clear()
    descriptors.load_proxies.cache_clear()
