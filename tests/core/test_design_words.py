"""What differs between two designs, in words."""

from benchbook.core.design import differing


def test_numbers_methods_and_lists_are_told():
    first = {"site": {"kind": "local"}, "plan": {"run_s": 5}, "methods": {"local": 1}, "threads": [1, 8]}
    second = {"site": {"kind": "local"}, "plan": {"run_s": 8}, "methods": {"local": 2}, "threads": [1, 4]}
    assert differing(first, first) == []
    assert differing(first, second) == [
        "how parts share this machine: number 1 against 2",
        "plan.run s: 5 against 8",
        "threads: 1, 8 against 1, 4",
    ]
