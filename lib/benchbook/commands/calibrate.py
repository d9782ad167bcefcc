"""The command `benchbook calibrate`: make campaigns whose answer is known, record them, check the record."""

from __future__ import annotations

import argparse

from benchbook.core.errors import InputErrors

MEASURING = ("same", "known", "lengths")
# Campaigns of equal arms in all; repetitions of each known effect, and of each length of a turn.
USUAL = {"same": 100, "known": 1, "lengths": 5}
ENGINES = ("mariadb", "tidb")


def options(parser: argparse.ArgumentParser) -> None:
    """Add what the command takes."""
    parser.add_argument(
        "what",
        choices=(*MEASURING, "record", "check"),
        help="same: equal arms; known: effects made on purpose, by turns and by whole runs; lengths: of a "
        "turn; record: put what was made into data/record; check: make the recorded table again",
    )
    parser.add_argument(
        "--campaigns",
        type=int,
        metavar="N",
        help="same: how many are to be there in the end (100); known (1) and lengths (5): how often each",
    )
    parser.add_argument("--minutes", type=float, metavar="M", help="begin none after so many minutes")
    parser.add_argument(
        "--engine", action="append", choices=ENGINES, help="known: these only (default: both)"
    )


def run(arguments: argparse.Namespace) -> int:
    """Make, record or check campaigns; return an exit code."""
    from benchbook.commands import campaigns

    what, number = arguments.what, arguments.campaigns
    if number is not None and number < 1:
        raise InputErrors([f"--campaigns: {number}: write a number from 1 on"])
    if what in MEASURING:
        asked = number or USUAL[what]
        return campaigns.run(what, asked, arguments.minutes, tuple(arguments.engine or ENGINES))
    print(campaigns.record() if what == "record" else campaigns.check())
    return 0
