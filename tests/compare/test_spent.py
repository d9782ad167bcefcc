"""What arms spent: the cores that the host left them are those that can be full."""

import math

import pandas as pd
import pytest

from benchbook.compare.spent import Cell


def test_stolen_time_is_not_the_machines_to_use():
    cell = Cell(**dict.fromkeys(Cell.__dataclass_fields__) | {"steal": pd.Series([10.0, math.nan, 0.0])})
    # A tenth of two cores was others'; where nobody looked, all of them were there.
    assert list(cell.left(2.0)) == pytest.approx([1.8, 2.0, 2.0])


def test_use_is_a_share_of_what_was_left():
    costs = {part: pd.DataFrame({"busy_cores": [busy]}) for part, busy in (("client", 0.3), ("proxy", 0.6))}
    cell = Cell(**dict.fromkeys(Cell.__dataclass_fields__) | {"steal": pd.Series([10.0]), "costs": costs})
    # 0.9 of the 1.8 cores that a tenth less of two are.
    assert list(cell.used(("client", "proxy"), 2.0)) == pytest.approx([0.5])
