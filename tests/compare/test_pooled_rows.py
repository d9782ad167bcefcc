"""Pooled sessions as tables: what the page has in per cent is a fraction there."""

import pytest

from benchbook.api.pooled import effect_rows
from benchbook.compare.pooled import pool
from tests.compare.sessions import sessions


def test_a_row_has_the_effect_and_what_sessions_differ_by_as_fractions():
    """Logs of 0.02, 0.02, 0.02 and 0.30 have a mean of 0.09, a variance of (3 x 0.07² + 0.21²) / 3 = 0.0196.

    Each has an error of 0.005, whose square is 0.000025: what remains is tau² = 0.019575, its root 0.1399.
    """
    found = pool("quick", sessions(0.02, 0.02, 0.02, 0.30))
    (row,) = effect_rows(found).to_dict("records")
    assert row["tau"] == pytest.approx(0.1399, rel=2e-3)
    assert row["effect"] == pytest.approx(0.0942, abs=1e-3)
    assert (row["occasions"], row["sessions"], row["processors"]) == (4, 4, 2)
