"""Commands about what was measured: archives, the record, series, reruns by others, the site."""

from __future__ import annotations

import argparse
from pathlib import Path

from benchbook.core import paths
from benchbook.core.errors import InputErrors


def publish_options(parser: argparse.ArgumentParser) -> None:
    """Add what `benchbook publish` takes."""
    parser.add_argument("--to", type=Path, help="the folder (default: public)")


def publish(arguments: argparse.Namespace) -> int:
    """Put the site together in one folder; return an exit code."""
    from benchbook.commands import publish

    print(publish.publish(paths.root(), (arguments.to or paths.root() / "public").absolute()))
    return 0


def export_options(parser: argparse.ArgumentParser) -> None:
    """Add what `benchbook export` takes."""
    parser.add_argument("study", help="name of a file in studies/")
    parser.add_argument("--to", type=Path, help="the archive to write (default: STUDY.tar.gz)")


def export(arguments: argparse.Namespace) -> int:
    """Pack a study's whole evidence; return an exit code."""
    from benchbook.commands import stage
    from benchbook.evidence import archive

    target = arguments.to or paths.root() / f"{arguments.study}.tar.gz"
    written = archive.pack(arguments.study, target, stage.commit_of_evidence(arguments.study))
    print(f"{written}: {written.stat().st_size / 1e6:.1f} MB; `make verify ARCHIVE={written}` checks it")
    return 0


def record_options(parser: argparse.ArgumentParser) -> None:
    """Add what `benchbook record` takes."""
    parser.add_argument("study", nargs="?", help="name of a file in studies/, measured")
    parser.add_argument(
        "--archive", nargs="+", type=Path, default=[], metavar="FILE",
        help="sessions measured elsewhere, as `benchbook export` wrote them there",
    )  # fmt: skip
    parser.add_argument("--supersede", metavar="SESSION", help="pool this session no more")
    parser.add_argument("--arms", nargs="+", default=[], metavar="ARM", help="only these arms of it")
    parser.add_argument("--retire", metavar="STUDY", help="measure this study no more")
    parser.add_argument(
        "--because", default="", metavar="WHY", help="why, in a sentence that the record keeps"
    )


def record(arguments: argparse.Namespace) -> int:
    """Put sessions into the record, or say of what is there why it counts no more; return an exit code."""
    from benchbook.commands import record

    asked = (arguments.study, arguments.archive, arguments.supersede, arguments.retire)
    if sum(map(bool, asked)) != 1:
        raise InputErrors(["record takes one of: a study, --archive with files, --supersede, --retire"])
    if arguments.supersede:
        print(record.supersede(arguments.supersede, arguments.because, arguments.arms))
    elif arguments.retire:
        print(record.retire(arguments.retire, arguments.because))
    else:
        print(record.take_all(arguments.archive) if arguments.archive else record.add(arguments.study))
    return 0


def remake_options(parser: argparse.ArgumentParser) -> None:
    """Add what `benchbook remake` takes."""
    parser.add_argument(
        "--write", action="store_true", help="write what the present code finds into the record, and say it"
    )


def remake(arguments: argparse.Namespace) -> int:
    """Make recorded sessions again; return an exit code."""
    from benchbook.commands import remake, rewrite

    if arguments.write:
        print(rewrite.run())
        return 0
    return remake.run()


def verify_options(parser: argparse.ArgumentParser) -> None:
    """Add what `benchbook verify` takes."""
    parser.add_argument("archive", type=Path, help="what export wrote")


def verify(arguments: argparse.Namespace) -> int:
    """Check an archive; return an exit code."""
    from benchbook.evidence import verify

    found = verify.verify(arguments.archive)
    print(found)
    return 0 if found.is_same else 1


def review_options(parser: argparse.ArgumentParser) -> None:
    """Add what `benchbook review` takes."""
    parser.add_argument("base", nargs="?", default="main", help="commit or branch to compare with")


def review(arguments: argparse.Namespace) -> int:
    """Write one page on what changed; return an exit code."""
    from benchbook.commands import review

    print(review.review(arguments.base))
    return 0


def rerun_options(parser: argparse.ArgumentParser) -> None:
    """Add what `benchbook rerun` takes."""
    parser.add_argument("place", type=Path, help="their archive, folder or findings.json")
    parser.add_argument("--keep", metavar="NAME", help="show it on the study's page too, under this name")


def rerun(arguments: argparse.Namespace) -> int:
    """Judge another team's findings by our own; return 1 where its archive came out otherwise here."""
    from benchbook.commands import rerun
    from benchbook.evidence import verify

    taken = rerun.read(arguments.place, arguments.keep or "rerun")
    print(rerun.markdown(taken), end="")
    if arguments.keep:
        file = rerun.keep(taken)
        print(f"kept as data/reruns/{file.name}; `make repro` shows it on the study's page")
    return int(verify.OTHER_FINDINGS in taken["notes"])
