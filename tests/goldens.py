"""What a command prints and what a page says, held in files that a person can read.

`make goldens` writes them anew; the difference is then read in git.
"""

import os
from pathlib import Path

FOLDER = Path(__file__).parent / "data" / "goldens"


def assert_golden(name: str, text: str) -> None:
    """Compare a text with the file of this name; write it where asked."""
    file = FOLDER / name
    if os.environ.get("BENCHBOOK_WRITE_GOLDENS"):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    expected = file.read_text(encoding="utf-8") if file.is_file() else ""
    assert text == expected, f"{name} differs; `make goldens` writes it anew"
