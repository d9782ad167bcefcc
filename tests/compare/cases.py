"""Cases in files that people read, and what comes out of each as a golden file that they read beside them."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from tests.goldens import assert_golden

DATA = Path(__file__).parents[1] / "data"


def read_cases(name: str) -> dict[str, Any]:
    """Return the cases of a file of `data`, by their titles."""
    return YAML(typ="safe").load(DATA / f"{name}.yaml")


def assert_cases(
    name: str, describe: Callable[[Any], Iterable[str]], part: str = "", indent: int = 4
) -> None:
    """Compare the lines that `describe` has of each case, under the case's title, with the golden file."""
    lines, titles = [], read_cases(name)
    for title, cases in (titles[part] if part else titles).items():
        lines.append(f"\n{title}")
        for case in cases:
            first, *rest = describe(case)
            lines += [f"  - {first}", *(f"{' ' * indent}{line}" for line in rest)]
    assert_golden(f"{name}.txt", "\n".join(lines).lstrip().replace("\xa0", " ") + "\n")
