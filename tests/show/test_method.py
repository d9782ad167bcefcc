"""The page on the method says how often equal arms came out unequal, small differences included."""

from __future__ import annotations

from benchbook.show import method


def study(low: float, high: float, label: str) -> dict[str, object]:
    aa = {"low": low, "high": high, "label": label, "effect": (low + high) / 2}
    return {"study": "one", "aa": aa}


def test_a_pair_that_leaves_zero_out_is_counted_however_small():
    known = {
        "a": study(-0.01, 0.02, "not shown"),
        "b": study(0.015, 0.111, "higher"),
        "c": study(-0.008, -0.002, "no practical difference"),
        "d": {"study": "none", "aa": None},
    }
    text = method.opening(known).text.replace("\N{NO-BREAK SPACE}", " ")
    assert (
        "Of 3 studies that compared an arm with itself (A/A), 1 showed a difference where there is none and "
        "1 a difference of less than a percentage point." in text
    )
