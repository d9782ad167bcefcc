"""How many made-up inputs a test tries: all of them in `make test-all`, a part of them in `make test`."""

import os

IS_DEEP = bool(os.environ.get("BENCHBOOK_DEEP"))


def examples(number: int) -> int:
    """Return how many of the examples of the deep set are tried: a third where it is not asked for."""
    return number if IS_DEEP else -(-number // 3)
