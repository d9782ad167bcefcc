"""Make recorded studies again in a process whose mathematics is another processor's, and print what differs.

`python -m tests.off_by_one ROOT NAME…`: with `BENCHBOOK_OFF` set, functions whose last bit processors and
libraries are free to choose are off by one unit in the last place, up or down by the bits of the result.
"""

import functools
import json
import math
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

OFF = ("exp", "log", "log1p", "expm1", "power", "sqrt", "mean", "sum")
OF_MATH = ("exp", "log", "log1p", "expm1", "pow", "sqrt")
OF_SPECIAL = ("stdtr", "stdtrit", "fdtrc", "chdtri", "betaincinv", "log1p", "expm1")


def off(made: Any) -> Any:
    """Return a float, or the floats of an array or table, off by one unit in the last place; zero is zero."""
    import numpy as np
    import pandas as pd

    plain = np.asarray(made)
    if plain.dtype.kind != "f":
        return made
    ahead = np.frexp(plain)[0] * 2**30 % 2 < 1
    is_kept = (plain == 0) | ~np.isfinite(plain)
    beside = np.where(is_kept, plain, np.nextafter(plain, np.where(ahead, np.inf, -np.inf)))
    if isinstance(made, pd.Series):
        return pd.Series(beside, index=made.index, name=made.name)
    if isinstance(made, pd.DataFrame):
        return pd.DataFrame(beside, index=made.index, columns=made.columns)
    return beside if plain.ndim else type(made)(beside)


def wrapped(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function whose results are off."""

    @functools.wraps(function, updated=())
    def other(*given: Any, **named: Any) -> Any:
        return off(function(*given, **named))

    for name in ("outer", "reduce", "accumulate", "reduceat", "at"):
        if hasattr(function, name):
            setattr(other, name, getattr(function, name))
    return other


def plant() -> None:
    """Put the others in the place of numpy's, math's and scipy's own, before benchbook is imported."""
    import numpy as np
    from numpy._core import _methods

    # What `array.mean()` and its like ask, which numpy looks up once: before another library calls it.
    for name in ("_mean", "_sum", "_var", "_std"):
        setattr(_methods, name, wrapped(getattr(_methods, name)))
    import pandas  # noqa: F401
    from scipy import special

    for module, names in ((np, OFF), (math, OF_MATH), (special, OF_SPECIAL)):
        for name in names:
            setattr(module, name, wrapped(getattr(module, name)))


def remake(root: Path, names: Sequence[str]) -> dict[str, list[str]]:
    """Make the newest session of studies again below a folder; return what differs of each."""
    from benchbook.core.artifacts import record
    from benchbook.evidence import sessions

    differences = {}
    for name in names:
        refused, differs = sessions.from_raw(record.read_index().newest(name), root / name)
        differences[name] = [*refused, *differs]
    return differences


if __name__ == "__main__":
    if os.environ.get("BENCHBOOK_OFF"):
        plant()
    print(json.dumps(remake(Path(sys.argv[1]), sys.argv[2:])))
