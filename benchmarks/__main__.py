"""`make bench`: every benchmark, then one table of what has a goal or an alternative."""

import importlib
import sys
import time

from benchmarks.table import Row, machine, show

PARTS = (
    *("precision", "live", "harness", "pipeline", "pages", "record", "parse", "storage"),
    *("engine_settings", "gates", "existing_logs"),
)


def run(parts: list[str], is_full: bool) -> list[Row]:
    """Run the parts one after the other; a part that breaks is a line of the table that says so."""
    rows = []
    for part in parts:
        print(f"{part} ...", file=sys.stderr, flush=True)
        began = time.monotonic()
        try:
            rows += importlib.import_module(f"benchmarks.{part}").rows(is_full)
        except Exception as error:
            rows.append(Row(part, f"broke: {type(error).__name__}: {error}", met=False))
        print(f"{part} took {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    return rows


if __name__ == "__main__":
    words = [word for word in sys.argv[1:] if not word.startswith("-")]
    unknown = sorted({*words} - {*PARTS}) + sorted({*sys.argv[1:]} - {*words} - {"--full", "--quick"})
    if unknown:
        sys.exit(f"{unknown[0]}: unknown; write --full, or some of {', '.join(PARTS)}")
    print(machine())
    show(run(words or list(PARTS), "--full" in sys.argv))
